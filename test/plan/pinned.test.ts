import { join } from "node:path";
import { expect, test } from "vitest";
import { openManifest } from "../../src/manifest/read.js";
import { plan } from "./account.js";

/**
 * Keys as the first release made them. A user who has paid for these rows must not pay again because a manifest is read
 * in another way: a key that changes here is money that somebody loses.
 */
const pinned: Record<string, [id: string, name: string, key: string][]> = {
  "sheet.csv": [
    ["#7", "cups/blue", "k1:66c07d5d57eda9ac1a6fbdd463c60a91e7f5f56ba95edf2e0f59d3256a1c46d3"],
    ["#7-2", "cups/blue-2", "k1:9f103af67997eae2974a3e225528c4738bf1447fae00627dbf66481a1abcea17"],
    ["plain", "plain", "k1:ee2153ef630aa1c3a463177822510ab8a386e3edf267563db6c6b7a67599def3"],
    ["6c664e1278", "6c664e1278", "k1:6c664e1278cc4b185dd7c3def884692387b2b76c422948d8383969782732dbb2"],
    ["093a61ffee", "093a61ffee", "k1:093a61ffee27e8e4eeffc79d55417ce5b593803dc08c0ac37082fa1805bcea3d"],
    ["same", "same", "k1:ceef320533eb52530407ba19e5c423973795787a5b076539a9bcfba893037452"],
    ["1828cec6dd", "1828cec6dd", "k1:1828cec6dddbc6d3c6875728d27033d269d8041f19345160b866b7817553b11c"],
    ["0572063cdd", "0572063cdd", "k1:0572063cdd06480feded75597bcd66bf40ea2bf631f37f5a720e9324cfe45d11"],
  ],
  "rows.json": [
    ["a", "a", "k1:cd08ac295b1439666bc53ede05436dbfe08d54412500b515b855c9d3a64ac44f"],
    ["4f22a45757", "4f22a45757", "k1:4f22a45757494a7983a66f9b425fecee99ae54246f60c536531eb2fb97f3937a"],
    ["a5041da666", "a5041da666", "k1:a5041da666df7f2e12047d72daee768fb6b6c1d7c55583a4f7c5ecd5a90a2436"],
    ["b", "b", "k1:d73126d0e8683ee0d346f868c010ede0513709943b79f19687a7755f170617ab"],
  ],
};

test.each(Object.entries(pinned))("the rows of %s have the keys that they always had", async (name, keys) => {
  const made = await plan(await openManifest(join(import.meta.dirname, "pinned", name)));
  expect(made.problems).toEqual([]);
  expect(made.items.map(({ rowId, name, key }) => [rowId, name, key])).toEqual(keys);
});
