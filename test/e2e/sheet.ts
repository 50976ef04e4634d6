/** Sheets of small pictures. */

export const cheapModel = "aurora-image-mini";

/** Ids as rows have them: `a01`, `a02`, … */
export function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `a${String(index + 1).padStart(2, "0")}`);
}

export function sheet(count: number, model = cheapModel): string {
  return ["id,model,prompt", ...ids(count).map((id) => `${id},${model},a picture of ${id}`)].join("\n");
}
