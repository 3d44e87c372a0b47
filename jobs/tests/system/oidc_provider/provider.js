// An OpenID provider over TLS for test_jobs_oidc.py: its own login pages take any name with any password.
//
//     node provider.js SETTINGS.json
//
// It prints a line when it answers.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const settings = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { Provider } = await import(settings.library);

const provider = new Provider(settings.issuer, {
  clients: [settings.client],
  pkce: { required: () => true },
  claims: { openid: ["sub"], profile: ["preferred_username"] },
  conformIdTokenClaims: settings.claimsAtUserinfo,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id.split("@")[0] }) }),
  cookies: { keys: ["test"] },
  features: { devInteractions: { enabled: true } },
});
createServer({ key: readFileSync(settings.key), cert: readFileSync(settings.cert) }, provider.callback())
  .listen(settings.port, "127.0.0.1", () => console.log("ready"));
