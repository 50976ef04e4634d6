import type { Place } from "./command.js";
import type { ScriptedService } from "./service.js";

/** What differs from run to run, and what stands in its place. */
const volatile: readonly (readonly [RegExp, string])[] = [
  [/127\.0\.0\.1:\d+/g, "<address>"],
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?/g, "<when>"],
  [/^(\s*time\s+)\S.*$/gm, "$1<time>"],
  [/(it took \d+ requests, ).*$/gm, "$1<time>"],
  [/^(started +\S+) by .*$/gm, "$1 by <user> on <host>"],
  [/(decides by )(<when>|\d\d:\d\d)/g, "$1<when>"],
  [/"(time|ms)":\d+/g, '"$1":<ms>'],
  [/\b\d+(\.\d+)? [kM]?B\b/g, "<bytes>"],
  // How many of these there are depends on how fast the machine is.
  [/^(\d+\/\d+ archived( · .*)?\n)+/gm, "<progress>\n"],
  // Nor is it sure that there is any between a message and the end.
  [/(<progress>\n(?:\[<when>\] .*\n)+)<progress>\n/g, "$1"],
];

export function masked(text: string, place: Place, service: ScriptedService): string {
  const named = text.replaceAll(service.url, "<service>").replaceAll(place.folder, "<folder>");
  return volatile.reduce((masking, [pattern, name]) => masking.replace(pattern, name), named);
}
