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

/** Thrown where a template names what is known only when the service's models are. */
export class LateName extends Error {
  override readonly name = "LateName";
  constructor(readonly named: string) {
    super(`"${named}" is not known yet`);
  }

  /** What to tell where it will not be known later either. */
  get fault(): Fault {
    return {
      message: `the template names "${this.named}", which is known only when an item's file is named`,
      expected: "category and key in the field output alone",
      got: this.named,
    };
  }
}
