/** Something that an administrator asked for and cannot have; the message says what was expected and what was got. */
export class AdminProblem extends Error {
  override readonly name = "AdminProblem";
}
