export interface ShownType {
  name: string;
  /** Its comment, without the marks of one. */
  doc: string;
  /** TypeScript, with the comments of members. */
  code: string;
}
export function typesOfLibrary(): Promise<{ shown: ShownType[]; parts: ShownType[] }>;
export function shapeText(schema: object, indent?: string): string;
