export interface Exported {
  name: string;
  /** The declaration file that has it. */
  path: string;
  /** Its comment, without the marks of one. */
  doc: string;
  /** The declaration without comments. */
  text: string;
}
export function exportedNames(): Exported[];
export function surface(): string;
