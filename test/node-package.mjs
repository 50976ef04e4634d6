/** npm's package with that Node for this platform. Unlike `node`, it has the headers that native modules are compiled with. */
export function nodePackage(version) {
  return `node-${process.platform}-${process.arch}@${version}`;
}
