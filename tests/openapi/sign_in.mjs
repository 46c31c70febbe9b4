// Signs a person in by openid-client, as its documentation says, and prints what it got as JSON.
import * as client from "openid-client";

const given = JSON.parse(process.env.GIVEN);
const { base, id, secret, redirectUri, school, username, password } = given;

const config = await client.discovery(
  new URL(`${base}/auth`),
  id,
  secret ? { client_secret: secret } : undefined,
  secret ? client.ClientSecretBasic(secret) : client.None(),
  { execute: [client.allowInsecureRequests] },
);
const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const nonce = client.randomNonce();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  scope: "openid profile read:classrooms",
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
  nonce,
  school,
});
// What a browser does: the form of the page, and the redirect that answers it.
const typed = await fetch(address, {
  method: "POST",
  headers: { Origin: base },
  body: new URLSearchParams({ username, password }),
  redirect: "manual",
});
const back = new URL(typed.headers.get("location"));
const tokens = await client.authorizationCodeGrant(config, back, {
  pkceCodeVerifier: verifier,
  expectedState: state,
  expectedNonce: nonce,
  idTokenExpected: true,
});
const claims = tokens.claims();
const told = await client.fetchUserInfo(config, tokens.access_token, claims.sub);
const newer = await client.refreshTokenGrant(config, tokens.refresh_token);
const toldAgain = await client.fetchUserInfo(config, newer.access_token, claims.sub);
const out = client.buildEndSessionUrl(config, {
  id_token_hint: tokens.id_token,
  post_logout_redirect_uri: given.afterLogout,
  state,
});
const left = await fetch(out, { redirect: "manual" });
await client.tokenRevocation(config, newer.refresh_token);
let refused = null;
try {
  await client.refreshTokenGrant(config, newer.refresh_token);
} catch (error) {
  refused = error.error;
}
console.log(
  JSON.stringify({
    status: typed.status,
    claims,
    told,
    toldAgain,
    rotated: newer.refresh_token !== tokens.refresh_token,
    left: left.headers.get("location") === `${given.afterLogout}?state=${state}`,
    refused,
  }),
);
