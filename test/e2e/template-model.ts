import type { Place } from "./process.js";

/** A models file with one template, which reaches nothing; its key is `pic`. */
export function writeTemplateModel(at: Place): void {
  at.write(
    "banner.svg",
    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{{ prompt }}</text></svg>`,
  );
  at.write(
    "models.yaml",
    "models: [{ key: pic, provider: { kind: template }, category: image, credits: 1, template: banner.svg }]\n",
  );
}
