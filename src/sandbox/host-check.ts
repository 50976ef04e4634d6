/**
 * A page in the browser of this machine can make a name of its own mean 127.0.0.1 and then talk to whatever listens
 * there. Its requests carry that name as Host, so only names that always mean this machine are answered.
 */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host);
}
