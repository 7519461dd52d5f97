import { expect, test } from 'vitest';
import { formatConfigProblem, parseServerConfig } from '../config/index.ts';
import { findingsOf } from './findings.ts';
import { optionFindings } from './option-findings.ts';

const load = (bind: string) =>
  parseServerConfig(`<Server version="8"><Type>origin</Type><IP>*</IP>\n<Bind>${bind}</Bind></Server>`, 'S.xml', {});
const srt = (inner: string, side = 'Providers') => `<${side}>\n<SRT>${inner}</SRT></${side}>`;
const webrtc = (inner: string) => `<Publishers>\n<WebRTC>${inner}</WebRTC></Publishers>`;
const passphrases = (path: string, passphrase: string) =>
  `<StreamPassphrases><Stream><StreamPath>${path}</StreamPath><Passphrase>${passphrase}</Passphrase></Stream></StreamPassphrases>`;
const SRT = 'Server/Bind/Providers/SRT';
const WEBRTC = 'Server/Bind/Publishers/WebRTC';

test.each<[string, string, string]>([
  [
    `${WEBRTC}/IceCandidates`,
    "'nowhere' is not <ip>:<ports>/udp",
    webrtc('<IceCandidates><IceCandidate>nowhere</IceCandidate></IceCandidates>'),
  ],
  [`${WEBRTC}/IceCandidates`, "'*:0' is not <ip>:<port>", webrtc('<IceCandidates><TcpRelay>*:0</TcpRelay></IceCandidates>')],
  [
    `${WEBRTC}/TcpRelayBind`,
    "'relay.test:3478': 'relay.test' is not an IP address",
    webrtc('<TcpRelayBind>relay.test:3478</TcpRelayBind>'),
  ],
  [
    `${SRT}/Options`,
    'PASSPHRASE has 5 bytes, must have 10 to 79',
    srt('<Options><Option><Key>SRTO_PASSPHRASE</Key><Value>short</Value></Option></Options>'),
  ],
  [
    `${SRT}/Options`,
    'OHEADBW is "4", must be a whole number from 5 to 100',
    srt('<Options><Option><Key>OHEADBW</Key><Value>4</Value></Option></Options>'),
  ],
  [
    'Server/Bind/Publishers/SRT/StreamPassphrases',
    'PASSPHRASE has 6 bytes, must have 10 to 79',
    srt(passphrases('v/a/s', 'longer'), 'Publishers'),
  ],
  [`${SRT}/StreamPassphrases`, "StreamPath is 'a/s', must be 'vhost/app/stream'", srt(passphrases('a/s', 'long enough'))],
  [
    `${SRT}/StreamMap`,
    "StreamPath is 'a/t', must be 'vhost/app/stream'",
    srt('<StreamMap><Stream><Port>9999</Port><StreamPath>a/t</StreamPath></Stream></StreamMap>'),
  ],
])('%s: %s', (path, message, bind) => {
  const loaded = load(bind);
  expect(optionFindings(loaded).map(formatConfigProblem)).toEqual([`S.xml:3: ${path}: ${message}`]);
  // The ports are not looked at: they cannot be read.
  expect(findingsOf(loaded, '/state').all).toEqual([expect.objectContaining({ severity: 'error', path, line: 3 })]);
});

test('the public address is not known yet', () => {
  const candidate = `<IceCandidates><IceCandidate>\${PublicIP}:10000/udp</IceCandidate></IceCandidates>`;
  expect(optionFindings(load(webrtc(candidate)))).toEqual([]);
});

test('SRT options without effect are reported, by check and in the log', () => {
  const option = (key: string) => `<Option><Key>${key}</Key><Value>1</Value></Option>`;
  const loaded = load(srt(`<Options>${option('SRTO_TSBPDMODE')}${option('LATENCY')}${option('mss')}</Options>`, 'Publishers'));
  const text = 'S.xml:3: Server/Bind/Publishers/SRT/Options: SRT options without effect in this server: TSBPDMODE, MSS';
  const { all, atStart } = findingsOf(loaded, '/state');
  for (const found of [all, atStart]) expect(found.filter(({ severity }) => severity === 'warn').map((each) => each.text)).toEqual([text]);
  expect(findingsOf(load(srt(`<Options>${option('LATENCY')}</Options>`)), '/state').all).toEqual([]);
});
