/** What the tests use of it; the package has no types. */
declare module "s3rver" {
  import type { AddressInfo } from "node:net";

  // biome-ignore lint/style/noDefaultExport: so it is exported.
  export default class S3rver {
    constructor(options: {
      port: number;
      address: string;
      silent: boolean;
      directory: string;
      configureBuckets: { name: string }[];
    });
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  }
}
