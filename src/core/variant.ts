/** The id or name of a variant: a redo of `cup` makes `cup-v2`. A row of a sheet may have such an id too. */
export function variantName(name: string, variant: number): string {
  return `${name}-v${variant}`;
}

/** The number in an id that looks like a variant's; null if it does not. Only the item itself says whether it is one. */
export function variantNumber(rowId: string): number | null {
  const [, number] = ending.exec(rowId) ?? [];
  return number === undefined ? null : Number(number);
}

/** The id of an item's row, which a variant has with its number behind it. */
export function rowIdOf({ rowId, variant }: { rowId: string; variant: number }): string {
  return variant === 1 ? rowId : rowId.replace(ending, "");
}

/** Where an item's name has the number of its take, if its row says so: it is 1, and a redo makes 2. */
export const takeMark = "{take}";

/** The wanted name of a variant's file, from that of its row's own item. */
export function variantFileName(name: string, variant: number): string {
  return name.includes(takeMark) ? name : variantName(name, variant);
}

/** The wanted name of an item's file, with the number of its take. */
export function fileName({ name, variant }: { name: string; variant: number }): string {
  return name.replaceAll(takeMark, String(variant));
}

/** The wanted name of an item's file without the number that a variant has behind it; one within the name stays. */
export function plainName({ name, variant }: { name: string; variant: number }): string {
  if (name.includes(takeMark)) return fileName({ name, variant });
  return variant === 1 ? name : name.replace(ending, "");
}

const ending = /-v(\d+)$/;
