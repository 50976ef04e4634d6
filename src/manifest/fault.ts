/** What is wrong with a template, or with one rendering of it. */
export interface Fault {
  message: string;
  expected: string;
  got: string;
  nearest?: string;
}

/** Thrown by a rendering that cannot be done. */
export class TemplateFault extends Error {
  override readonly name = "TemplateFault";
  constructor(
    readonly fault: Fault,
    /** The text itself is wrong, whatever row it is rendered for. */
    readonly everywhere = false,
  ) {
    super(fault.message);
  }
}
