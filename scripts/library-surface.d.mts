export interface Exported {
  name: string;
  /** The declaration file that has it. */
  path: string;
  /** Its comment, without the marks of one. */
  doc: string;
  /** The declaration with the comments inside it. */
  full: string;
  /** The same without. */
  text: string;
}
export function exportedNames(): Exported[];
export function surface(): string;
export function whole(declaration: Exported, exported: readonly Exported[]): string;
