// Imports the document as Postman or Bruno does, and prints how many requests came of it.
import { readFileSync } from "node:fs";
import { openApiToBruno } from "@usebruno/converters";
import postman from "openapi-to-postmanv2";

const [program, path] = process.argv.slice(2);
const document = JSON.parse(readFileSync(path, "utf8"));
const count = (folder, name) => (folder[name] ? folder[name].reduce((sum, one) => sum + count(one, name), 0) : 1);

if (program === "bruno") {
  console.log(count(openApiToBruno(document), "items"));
} else {
  postman.convert({ type: "json", data: document }, { folderStrategy: "Tags" }, (error, made) => {
    if (error || !made.result) throw new Error(error ?? made.reason);
    console.log(count(made.output[0].data, "item"));
  });
}
