/** What happened at a served models file and its providers, and how often. */
export interface ServedCounts {
  /** Ends of the service's process. */
  serviceCrashes: number;
  commandCrashes: number;
  /** Jobs that providers have taken, other than programs. */
  executions: number;
  /** Programs that were begun. */
  programs: number;
  /** Answers that were lost between a provider and the service. */
  answersLost: number;
  /** Of the command, the repeated ones included. */
  paidRequests: number;
  /** Answers to paid requests that were lost between the service and the command. */
  repliesLost: number;
  /** Jobs whose outcome was in doubt, each time. */
  unknown: number;
  /** Those that a person ended. */
  settled: number;
  /** Executions that a person has allowed beside an earlier one, because what that one made could not be had. */
  allowed: number;
  /** Items that nobody knows the outcome of at the end. */
  held: number;
}

export function noServedCounts(): ServedCounts {
  return {
    serviceCrashes: 0,
    commandCrashes: 0,
    executions: 0,
    programs: 0,
    answersLost: 0,
    paidRequests: 0,
    repliesLost: 0,
    unknown: 0,
    settled: 0,
    allowed: 0,
    held: 0,
  };
}
