export function startOwnPostgres(): Promise<{ url: string; stop(): Promise<void> }>;
