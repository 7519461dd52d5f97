/** Checks SRT and WebRTC options with their services; otherwise errors would appear only when ports open, or when a client connects. */
import { ConfigError, type LoadedServer, type Place, type ServerConfig } from '../config/index.ts';
import { readCandidatePorts, withAnyPublicAddress } from '../services/webrtc/candidate-ports.ts';
import { readRelayAddresses } from '../services/webrtc/relay-addresses.ts';
import { readListenerOptions, readPassphrase, SocketOptionError } from '../transport/srt/socket-options.ts';
import { parseStreamId } from '../wire/srt/stream-id.ts';

type Bind = ServerConfig['bind']['publishers'];
type PlaceOf = LoadedServer['placeOf'];

/** Errors that prevent the start. */
export function optionFindings({ config, placeOf }: LoadedServer): ConfigError[] {
  const { providers, publishers } = config.bind;
  return [providers, publishers].flatMap(({ srt, webrtc }) => [
    ...(srt === undefined ? [] : srtFaults(srt, placeOf)),
    ...(webrtc === undefined ? [] : webrtcFaults(webrtc, placeOf)),
  ]);
}

/** Valid options without effect in this server; they do not prevent the start. */
export function idleOptionFindings({ config, placeOf }: LoadedServer): (Place & { readonly message: string })[] {
  const { providers, publishers } = config.bind;
  return [providers, publishers].flatMap(({ srt }) => {
    if (srt === undefined) return [];
    const { ignored } = readListenerOptions(srt.options);
    const message = `SRT options without effect in this server: ${ignored.join(', ')}`;
    return ignored.length === 0 ? [] : [{ ...placeOf(srt, 'options'), message }];
  });
}

function srtFaults(srt: NonNullable<Bind['srt']>, placeOf: PlaceOf): ConfigError[] {
  const { options, streamMap, streamPassphrases } = srt;
  const faults: ConfigError[] = [];
  const attempt = (key: keyof typeof srt, read: () => unknown): void => {
    const message = refusalOf(read, SocketOptionError);
    if (message !== null) faults.push(new ConfigError(message, placeOf(srt, key)));
  };
  attempt('options', () => readListenerOptions(options));
  for (const { passphrase } of streamPassphrases) attempt('streamPassphrases', () => readPassphrase(passphrase));
  for (const [key, paths] of Object.entries({ streamMap, streamPassphrases })) {
    const wrong = paths.find(({ streamPath }) => parseStreamId(streamPath) === null);
    if (wrong === undefined) continue;
    faults.push(new ConfigError(`StreamPath is '${wrong.streamPath}', must be 'vhost/app/stream'`, placeOf(srt, key)));
  }
  return faults;
}

function webrtcFaults(webrtc: NonNullable<Bind['webrtc']>, placeOf: PlaceOf): ConfigError[] {
  const { iceCandidates, tcpRelayBind } = webrtc;
  const faults: ConfigError[] = [];
  const attempt = (key: keyof typeof webrtc, read: () => unknown): void => {
    const message = refusalOf(read, TypeError);
    if (message !== null) faults.push(new ConfigError(message, placeOf(webrtc, key)));
  };
  attempt('iceCandidates', () => readCandidatePorts(withAnyPublicAddress(iceCandidates?.iceCandidate), []));
  attempt('iceCandidates', () => readRelayAddresses(withAnyPublicAddress(iceCandidates?.tcpRelay), []));
  if (tcpRelayBind !== undefined) attempt('tcpRelayBind', () => readRelayAddresses(['*:1'], [], tcpRelayBind));
  return faults;
}

/** The error of `read` as an error of `kind`; null if there is none. */
function refusalOf(read: () => unknown, kind: new (message: string) => Error): string | null {
  try {
    read();
    return null;
  } catch (error) {
    if (!(error instanceof kind)) throw error;
    return error.message;
  }
}
