/** All fuzz targets. */
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { ACCESS_TARGETS } from './access.ts';
import { ANSWER_TARGETS } from './answers.ts';
import { CODEC_TARGETS } from './codecs.ts';
import { DTLS_TARGETS } from './dtls.ts';
import { FANOUT_TARGETS } from './fanout.ts';
import { FRAMING_TARGETS } from './framing.ts';
import { MOVIE_TARGETS } from './movies.ts';
import { RELAY_TARGETS } from './relays.ts';
import { REQUEST_TARGETS } from './requests.ts';
import { RTMP_TARGETS } from './rtmp.ts';
import { RTP_TARGETS } from './rtp.ts';
import { SECURE_TARGETS } from './secure.ts';
import { SRT_TARGETS } from './srt.ts';
import { TEXT_TARGETS } from './texts.ts';
import { TRANSPORT_STREAM_TARGETS } from './transport-stream.ts';
import { WEBRTC_TARGETS } from './webrtc.ts';

export const ALL_TARGETS: readonly FuzzTarget[] = [
  ...CODEC_TARGETS,
  ...RTMP_TARGETS,
  ...RTP_TARGETS,
  ...WEBRTC_TARGETS,
  ...DTLS_TARGETS,
  ...FANOUT_TARGETS,
  ...SRT_TARGETS,
  ...TRANSPORT_STREAM_TARGETS,
  ...RELAY_TARGETS,
  ...MOVIE_TARGETS,
  ...TEXT_TARGETS,
  ...FRAMING_TARGETS,
  ...REQUEST_TARGETS,
  ...ACCESS_TARGETS,
  ...SECURE_TARGETS,
  ...ANSWER_TARGETS,
];
