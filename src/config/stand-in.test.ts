import { expect, test } from 'vitest';
import { ConfigError, readApplication } from './index.ts';
import { parseServerConfig } from './server-file.ts';

function read(standIn: object): ReturnType<typeof readApplication> {
  return readApplication({ name: 'app', type: 'live', sourceLoss: { standIn: [standIn] } });
}

function fault(standIn: object): string {
  try {
    read(standIn);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'no fault';
}

test('a file declares stand-ins by elements, the API by a list; omitted members have defaults', () => {
  const entries = `<StandIn><Url>file:///slate.mp4</Url><MediaRootDir>media</MediaRootDir></StandIn>
    <StandIn><Url>stream://default/app/backup</Url><StreamName>tv*</StreamName><AfterMs>0</AfterMs><KeepMs>60000</KeepMs></StandIn>`;
  const xml = `<Server version="8"><Name>s</Name><Type>origin</Type><IP>*</IP><Bind/><VirtualHosts><VirtualHost><Name>v</Name><Applications>
    <Application><Name>app</Name><Type>live</Type><SourceLoss>${entries}</SourceLoss></Application></Applications></VirtualHost></VirtualHosts></Server>`;
  const { virtualHosts, warnings } = parseServerConfig(xml, 'Server.xml', { directory: '/etc/millrace' });
  expect(warnings).toEqual([]);
  const standIn = [
    { url: 'file:///slate.mp4', mediaRootDir: '/etc/millrace/media', streamName: '*', afterMs: 500, keepMs: 0 },
    { url: 'stream://default/app/backup', streamName: 'tv*', afterMs: 0, keepMs: 60_000 },
  ];
  expect(virtualHosts[0]?.applications[0]?.typed.sourceLoss).toEqual({ keepStreamMs: 0, takeOverSilenceMs: 2000, standIn });
  const given = { url: 'file:///slate.mp4', mediaRootDir: '/media' };
  const { typed, echo } = read(given);
  expect(typed.sourceLoss?.standIn).toEqual([{ ...given, streamName: '*', afterMs: 500, keepMs: 0 }]);
  expect(echo['sourceLoss']).toEqual({ standIn: [given] });
});

test.each([
  [{}, /standIn\.url is not optional/],
  [{ url: 'slate.mp4' }, /StandIn\.Url must be file:\/\/PATH or stream:\/\/VHOST\/APP\/STREAM, but got 'slate.mp4'/],
  [{ url: 'http://h/slate.mp4' }, /StandIn\.Url must be/],
  [{ url: 'stream://default/app' }, /StandIn\.Url must be/],
  [{ url: 'file:///slate.mp4' }, /StandIn\.MediaRootDir is missing/],
  [{ url: 'file://', mediaRootDir: '/media' }, /StandIn\.Url must name a file below MediaRootDir/],
  [{ url: 'file:///../slate.mp4', mediaRootDir: '/media' }, /StandIn\.Url must name a file below MediaRootDir/],
  [{ url: 'stream://v/a/s', afterMs: -1 }, /afterMs/],
  [{ url: 'stream://v/a/s', keepMs: 'x' }, /keepMs/],
  [{ url: 'stream://v/a/s', fallback: 'x' }, /Unknown item.*fallback/],
])('%j is refused with the place', (standIn, message) => {
  expect(fault(standIn)).toMatch(message);
});
