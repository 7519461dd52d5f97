/** Paths of a peer, without a network. */
import type { PeerPath } from '../../src/services/webrtc/transport/peer-paths.ts';
import type { PeerPipe } from '../../src/services/webrtc/transport/peer-pipe.ts';

/** A TCP connection that accepts everything. */
export class TestPipe implements PeerPipe {
  readonly place: string;
  readonly host = '192.0.2.9';
  readonly backlog = 0;
  ended = 0;

  constructor(place: string) {
    this.place = place;
  }

  send(): void {}

  sendFrames(): void {}

  end(): void {
    this.ended += 1;
  }
}

/** The path to a host. */
export function udp(host: string): PeerPath {
  return { kind: 'udp', socket: 0, to: { host, port: 1000 } };
}

/** The path over a connection of that name. */
export function tcp(name: string): { kind: 'tcp'; pipe: TestPipe } {
  return { kind: 'tcp', pipe: new TestPipe(name) };
}
