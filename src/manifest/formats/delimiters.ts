/** What may part the cells of a sheet that is saved as text. */
export const delimiters = { comma: ",", semicolon: ";", tab: "\t" } as const;
export type DelimiterName = keyof typeof delimiters;
