export function pages(): string[];
export function sections(): Promise<Record<string, string>>;
export function sectionsIn(text: string): string[];
export function withSections(text: string, made: Readonly<Record<string, string>>, file?: string): string;
