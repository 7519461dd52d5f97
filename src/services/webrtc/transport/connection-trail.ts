/** Attempts to connect one peer, logged in one line when they failed. */

import { hostPort } from '../../../util/client-address.ts';
import { type PeerCandidate, readCandidates } from '../../../wire/ice/ice-candidate.ts';
import type { CheckFault } from '../../../wire/ice/ice-lite.ts';

/** Maximum of addresses listed; checks from further addresses are counted together. */
const MAX_PLACES = 16;
/** Candidates of the peer that are kept, and entries of a list that are written. */
const MAX_CANDIDATES = 24;
const MAX_WRITTEN = 8;

interface Checks {
  good: number;
  readonly faults: Map<CheckFault, number>;
  /** Our answers that the system did not send. */
  unsent: number;
}

/** One for each session until it is connected. Bounded: surplus entries of a peer are only counted. */
export class ConnectionTrail {
  #offered: readonly string[] = [];
  readonly #announced = new Map<string, PeerCandidate>();
  /** By `udp 192.0.2.1:5000`. */
  readonly #checks = new Map<string, Checks>();
  readonly #elsewhere: Checks = { good: 0, faults: new Map(), unsent: 0 };
  #asked = 0;
  #proved = 0;
  #handshakeHeard = 0;
  #handshakeSaid = 0;

  /** Local candidates announced to the peer. */
  offered(candidates: readonly string[]): void {
    this.#offered = candidates;
  }

  /** Candidates that the peer announced. */
  announced(candidates: readonly PeerCandidate[]): void {
    for (const candidate of candidates) {
      const place = placeOfCandidate(candidate);
      if (this.#announced.size < MAX_CANDIDATES) this.#announced.set(place, candidate);
    }
  }

  /** A check came from `place`; `fault`: why it was refused, null if it was answered. */
  checked(place: string, fault: CheckFault | null): void {
    const checks = this.#at(place);
    if (fault === null) checks.good += 1;
    else checks.faults.set(fault, (checks.faults.get(fault) ?? 0) + 1);
  }

  /** The answer to a check could not be sent. */
  unsent(place: string): void {
    this.#at(place).unsent += 1;
  }

  /** We sent a check. */
  asked(): void {
    this.#asked += 1;
  }

  /** The peer answered one of our checks. */
  proved(): void {
    this.#proved += 1;
  }

  /** A datagram of the handshake came. */
  handshakeHeard(): void {
    this.#handshakeHeard += 1;
  }

  handshakeSaid(): void {
    this.#handshakeSaid += 1;
  }

  /** One line: the candidates of each side, the checked pairs, and the state of the handshake. */
  describe(): string {
    const parts = [`offered ${listed(readCandidates(this.#offered.join('\n')).map(placeOfCandidate))}`];
    parts.push(this.#announced.size === 0 ? 'the peer announced no address' : `announced by the peer ${this.#announcements()}`);
    // Addresses with good checks come first, because the list is cut.
    const known = [...this.#checks].sort(([, a], [, b]) => Number(b.good > 0) - Number(a.good > 0));
    const checks = listed(known.map(([place, counts]) => `${place} ${countsOf(counts)}`));
    const elsewhere = countsOf(this.#elsewhere);
    if (known.length === 0) parts.push('no connectivity check came');
    else parts.push(`connectivity checks from ${checks}${elsewhere === '' ? '' : `, other addresses ${elsewhere}`}`);
    if (this.#asked > 0 && this.#proved === 0) parts.push(`${this.#asked} checks of ours went, none was answered`);
    if ([...this.#checks.values(), this.#elsewhere].some(({ good }) => good > 0)) parts.push(this.#handshake());
    return parts.join('; ');
  }

  #at(place: string): Checks {
    let checks = this.#checks.get(place);
    if (checks === undefined) {
      if (this.#checks.size >= MAX_PLACES) return this.#elsewhere;
      checks = { good: 0, faults: new Map(), unsent: 0 };
      this.#checks.set(place, checks);
    }
    return checks;
  }

  #announcements(): string {
    return listed([...this.#announced].map(([place, candidate]) => `${place} (${candidate.type}, ${this.#noteOn(place, candidate)})`));
  }

  #noteOn(place: string, { protocol, address }: PeerCandidate): string {
    if (address.endsWith('.local')) return 'hidden behind a name';
    if (protocol === 'tcp') return 'it connects from another port';
    return this.#checks.has(place) ? 'checked' : 'no check came from it';
  }

  #handshake(): string {
    if (this.#handshakeHeard === 0 && this.#handshakeSaid === 0) return 'DTLS not begun: no datagram of it came';
    return `DTLS begun and not finished: ${this.#handshakeHeard} datagrams came, ${this.#handshakeSaid} went`;
  }
}

function placeOfCandidate({ protocol, address, port }: PeerCandidate): string {
  return `${protocol} ${hostPort(address, port)}`;
}

function countsOf({ good, faults, unsent }: Checks): string {
  const parts = [
    ...(good > 0 ? [`${good} good`] : []),
    ...Array.from(faults, ([fault, count]) => `${count} refused (${fault})`),
    ...(unsent > 0 ? [`${unsent} answers could not be sent`] : []),
  ];
  return parts.join(' and ');
}

function listed(entries: readonly string[]): string {
  if (entries.length === 0) return 'nothing';
  const rest = entries.length - MAX_WRITTEN;
  return `${entries.slice(0, MAX_WRITTEN).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
