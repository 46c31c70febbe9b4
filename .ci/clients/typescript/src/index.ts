import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./schema.js";

export type * from "./schema.js";

/** Makes a client that carries a token to the service at an address. */
export function schoolClient(baseUrl: string, token: string): Client<paths> {
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
}
