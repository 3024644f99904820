// The extension is what pi and omp load, by their own types.
import type { ExtensionFactory } from "@earendil-works/pi-coding-agent";
import type { ExtensionAPI } from "@oh-my-pi/pi-coding-agent/extensibility/extensions/types";
import extension from "../src/index.ts";

export const forPi: ExtensionFactory = extension;
export const forOmp = (omp: ExtensionAPI) => extension(omp);
