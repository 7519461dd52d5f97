/** Child process of the test of wiping: opens a viewer with keys given in hexadecimal, and closes it on request. */
import { createInterface } from 'node:readline';
import { createCertificate } from '../../src/services/webrtc/transport/dtls-certificate.ts';
import { openFanout } from '../../src/services/webrtc/transport/fanout/open-fanout.ts';
import { SrtpProfile, wipeKeys } from '../../src/wire/srtp/profile.ts';

const nothing = (): undefined => undefined;
const listener = { stun: nothing, dtls: nothing, rtcp: nothing, rtp: nothing, tcp: nothing };
const { fanout } = openFanout({ certificate: createCertificate(Date.now()), listener, threads: 1 });
const { socket } = await fanout.bind('127.0.0.1', 0);
const extension = { bytes: new Uint8Array(0), sendTimeAt: 0, transportSequenceAt: 0 };
const viewer = fanout.openViewer({ cname: 'somebody', slots: [{ ssrc: 1, payloadType: 96, rtx: null, extension }] });

for await (const line of createInterface({ input: process.stdin })) {
  const [word = '', profile = '', ...secrets] = line.split(' ');
  if (word === 'close') fanout.closeViewer(viewer);
  else {
    const [localKey, localSalt, remoteKey, remoteSalt] = secrets.map((hex) => Buffer.from(hex, 'hex')) as [Buffer, Buffer, Buffer, Buffer];
    const keys = { profile: Number(profile) === 7 ? SrtpProfile.AEAD_AES_128_GCM : SrtpProfile.AES128_CM_SHA1_80, localKey, localSalt };
    fanout.setKeys(viewer, { ...keys, remoteKey, remoteSalt });
    wipeKeys({ ...keys, remoteKey, remoteSalt });
    fanout.connect(viewer, socket, { host: '127.0.0.1', port: 9 });
  }
  console.log(`${fanout.kind} ${word}`);
}
fanout.close();
