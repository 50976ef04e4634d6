/**
 * Whether the scan of a sequential JPEG holds exactly the picture that its header states. Decoders stop at the last
 * row and forgive what is left over, so a hole in the middle goes unnoticed: the zeros decode to something, only to
 * more or fewer blocks than there were. Here nothing is decoded; the codes are counted off to the last bit.
 */

/** What is wrong with the scan, in words; null when it is whole, or when it is not of the sequential Huffman kind. */
export function jpegScanFault(bytes: Buffer): string | null {
  const header: Header = { frame: null, tables: new Map(), restart: 0 };
  for (let at = 2; at + 4 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return "no marker where one is due";
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at++;
      continue;
    }
    if (marker === 0xd9) return null;
    const length = bytes.readUInt16BE(at + 2);
    const segment = bytes.subarray(at + 4, at + 2 + length);
    at += 2 + length;
    if (isFrame(marker) && marker !== 0xc0 && marker !== 0xc1) return null;
    if (marker !== 0xda) readSegment(marker, segment, header);
    else {
      const end = walkScan(bytes, at, segment, header);
      if (typeof end !== "number") return end === "not this kind" ? null : end;
      at = end;
    }
  }
  return null;
}

interface Component {
  id: number;
  across: number;
  down: number;
}

interface Header {
  frame: { width: number; height: number; components: Component[] } | null;
  /** By class (0 for DC, 16 for AC) and number: the code's length and symbol for each 16 bits that may follow. */
  tables: Map<number, Uint16Array>;
  /** Blocks between two restart markers, in units of the scan; 0 for none. */
  restart: number;
}

/** Every kind of frame header but the markers of tables that lie among them. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function readSegment(marker: number, segment: Buffer, header: Header): void {
  if (marker === 0xc4) readTables(segment, header);
  if (marker === 0xdd && segment.length >= 2) header.restart = segment.readUInt16BE(0);
  if (!isFrame(marker) || segment.length < 6) return;
  const components = Array.from({ length: segment[5] ?? 0 }, (_, number) => {
    const [id = 0, factors = 0] = segment.subarray(6 + 3 * number);
    return { id, across: factors >> 4, down: factors & 15 };
  });
  header.frame = { height: segment.readUInt16BE(1), width: segment.readUInt16BE(3), components };
}

function readTables(segment: Buffer, header: Header): void {
  for (let at = 0; at + 17 <= segment.length; ) {
    const table = new Uint16Array(65_536);
    const counts = segment.subarray(at + 1, at + 17);
    let symbolAt = at + 17;
    let code = 0;
    counts.forEach((count, index) => {
      const length = index + 1;
      for (let each = 0; each < count; each++, code++) {
        const first = code << (16 - length);
        table.fill((length << 8) | (segment[symbolAt++] ?? 0), first, first + (1 << (16 - length)));
      }
      code <<= 1;
    });
    header.tables.set(segment[at] ?? 0, table);
    at = symbolAt;
  }
}

/** The bits of a scan, without the zero after each 0xff. Beyond the next marker they are zeros. */
class Bits {
  private held = 0;
  private count = 0;
  /** How many of the held bits are from beyond the marker. */
  private beyond = 0;

  constructor(
    private readonly bytes: Buffer,
    public at: number,
  ) {}

  /** The symbol of the code that follows; -1 for no code. */
  symbol(table: Uint16Array): number {
    this.fill();
    const found = table[(this.held >>> (this.count - 16)) & 0xffff] ?? 0;
    if (found === 0) return -1;
    this.count -= found >> 8;
    return found & 0xff;
  }

  skip(bits: number): void {
    this.fill();
    this.count -= bits;
  }

  /** More was read than there is. */
  get isOver(): boolean {
    return this.count < this.beyond;
  }

  /** Whole bytes before the next marker that nothing has read. */
  get bytesLeft(): number {
    let at = this.at;
    while (at < this.bytes.length && !this.isMarker(at)) at++;
    return ((this.count - this.beyond) >> 3) + (at - this.at);
  }

  private isMarker(at: number): boolean {
    return this.bytes[at] === 0xff && this.bytes[at + 1] !== 0;
  }

  private fill(): void {
    while (this.count <= 16) {
      const isEnd = this.at >= this.bytes.length || this.isMarker(this.at);
      const byte = isEnd ? 0 : (this.bytes[this.at] ?? 0);
      this.held = ((this.held << 8) | byte) & 0xffffff;
      this.count += 8;
      if (isEnd) this.beyond += 8;
      else this.at += byte === 0xff ? 2 : 1;
    }
  }
}

/** Walks one scan. Returns where it ends, or what is wrong with it. */
function walkScan(bytes: Buffer, start: number, segment: Buffer, header: Header): number | string {
  const plan = planOf(segment, header);
  if (plan === null) return "not this kind";
  let bits = new Bits(bytes, start);
  for (let unit = 0; unit < plan.units; unit++) {
    if (header.restart > 0 && unit > 0 && unit % header.restart === 0) {
      const next = restartAt(bytes, bits);
      if (next === null) return "a restart marker is not where it is due";
      bits = new Bits(bytes, next);
    }
    for (const { dc, ac } of plan.blocks) {
      if (!walkBlock(bits, dc, ac)) return "its scan holds a code that is none";
    }
    if (bits.isOver) return "its scan ends before the picture does";
  }
  const left = bits.bytesLeft;
  // Some encoders end a scan with a byte or two of padding.
  return left > 2 ? `${left} bytes of its scan are left over` : bits.at + scanRest(bytes, bits.at);
}

/** Bytes from there to the next marker. */
function scanRest(bytes: Buffer, at: number): number {
  let end = at;
  while (end < bytes.length && !(bytes[end] === 0xff && bytes[end + 1] !== 0)) end++;
  return end - at;
}

function restartAt(bytes: Buffer, bits: Bits): number | null {
  const marker = bytes[bits.at + 1] ?? 0;
  const isRestart = bytes[bits.at] === 0xff && marker >= 0xd0 && marker <= 0xd7;
  return isRestart && bits.bytesLeft === 0 && !bits.isOver ? bits.at + 2 : null;
}

interface ScanPlan {
  units: number;
  /** The blocks of each unit, with their tables. */
  blocks: { dc: Uint16Array; ac: Uint16Array }[];
}

function planOf(segment: Buffer, { frame, tables }: Header): ScanPlan | null {
  if (frame === null || frame.height === 0) return null;
  const { width, height, components } = frame;
  const [acrossMax, downMax] = [
    Math.max(...components.map(({ across }) => across)),
    Math.max(...components.map(({ down }) => down)),
  ];
  const blocks: ScanPlan["blocks"] = [];
  const count = segment[0] ?? 0;
  let units = Math.ceil(width / (8 * acrossMax)) * Math.ceil(height / (8 * downMax));
  for (let number = 0; number < count; number++) {
    const component = components.find(({ id }) => id === segment[1 + 2 * number]);
    const choice = segment[2 + 2 * number] ?? 0;
    const [dc, ac] = [tables.get(choice >> 4), tables.get(16 + (choice & 15))];
    if (!component || !dc || !ac) return null;
    const { across, down } = component;
    // A component alone in its scan has only the blocks that show something.
    if (count === 1) {
      units =
        Math.ceil(Math.ceil((width * across) / acrossMax) / 8) *
        Math.ceil(Math.ceil((height * down) / downMax) / 8);
    }
    const each = count === 1 ? 1 : across * down;
    for (let block = 0; block < each; block++) blocks.push({ dc, ac });
  }
  return { units, blocks };
}

/** One block: a difference, and pairs of zeros and value until 64 are told. False for what is no code. */
function walkBlock(bits: Bits, dc: Uint16Array, ac: Uint16Array): boolean {
  const size = bits.symbol(dc);
  if (size < 0 || size > 16) return false;
  bits.skip(size);
  for (let at = 1; at < 64; ) {
    const pair = bits.symbol(ac);
    if (pair < 0) return false;
    const valueBits = pair & 15;
    if (valueBits === 0 && pair !== 0xf0) return pair === 0;
    at += (pair >> 4) + 1;
    if (at > 64) return false;
    bits.skip(valueBits);
  }
  return true;
}
