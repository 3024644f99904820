// What Slack's clients need besides the control API: the app-level token, a logger, and how connections went.
import { entry, token } from "./simulator.mjs";

export * from "./simulator.mjs";
export const appToken = token.replace("xoxb-", "xapp-");
export const logger = {
  debug() {}, info() {}, warn() {}, setLevel() {}, setName() {}, getLevel: () => "error",
  error: (...words) => process.env.VERBOSE && console.error(...words),
};
export const link = (kind, matches) => entry("links", kind, matches);
