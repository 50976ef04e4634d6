import fc from "fast-check";

const surrogates = { first: 0xd800, count: 0x800 };

/**
 * Any character of Unicode, as the unit of `fc.string`. fast-check's own unit `binary` first puts all 1.1 million of them
 * into a table, once in each worker, which takes longer than the tests that use it.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - surrogates.count })
  .map((code) => String.fromCodePoint(code < surrogates.first ? code : code + surrogates.count));
