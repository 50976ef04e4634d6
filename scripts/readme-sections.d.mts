export function sections(): Promise<Record<string, string>>;
export function withSections(text: string, made: Readonly<Record<string, string>>): string;
