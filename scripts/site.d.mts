export function anchorOf(heading: string): string;
export function siteOf(root: string): Map<string, string | Uint8Array>;
