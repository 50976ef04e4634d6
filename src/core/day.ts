/** When the day of an instant began on the clocks here (both UTC ms). */
export function dayBegin(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}
