import { expect, test } from 'vitest';
import { parseServerConfig } from './index.ts';
import { definitionFolders, includesPort, portsOf, readingFolders, writingFolders } from './server-config.ts';

function config(storage: string) {
  const xml = `<Server version="8"><Type>origin</Type><IP>*</IP>${storage}<Bind/><VirtualHosts><VirtualHost><Name>v</Name><Applications>
<Application><Name>a</Name><Type>live</Type><Providers><FILE><RootPath>/srv/media</RootPath></FILE>
<Schedule><MediaRootDir>/srv/films</MediaRootDir><ScheduleFilesDir>/srv/schedules</ScheduleFilesDir></Schedule>
<Multiplex><MuxFilesDir>/srv/mux</MuxFilesDir></Multiplex></Providers></Application>
</Applications></VirtualHost></VirtualHosts></Server>`;
  return parseServerConfig(xml, 'S.xml').config;
}

test('files are played from a RootPath of the file as well, and written into allowed folders only', () => {
  const bounded = config('<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>');
  const reading = readingFolders(bounded, '/state');
  reading.check('/srv/media/slates/evening.mp4');
  reading.check('/srv/films/evening.mp4');
  reading.check('/state/recordings/x.mp4');
  expect(() => reading.check('/etc/passwd')).toThrow('AllowedRoots');
  const writing = writingFolders(bounded, '/state');
  writing.check('/state/recordings/x.mp4');
  expect(() => writing.check('/srv/media/x.mp4')).toThrow('AllowedRoots');
  // Without the setting nothing is bounded.
  expect([readingFolders(config(''), '/state').bounded, writingFolders(config(''), '/state').bounded]).toEqual([false, false]);
});

test('channels are defined in a ScheduleFilesDir and a MuxFilesDir of the file as well', () => {
  const definitions = definitionFolders(config('<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>'), '/state');
  definitions.check('/srv/schedules/tv.sch');
  definitions.check('/state/recordings/tv.sch');
  expect(() => definitions.check('/srv/films/tv.sch')).toThrow('AllowedRoots');
  definitions.check('/srv/mux/tv.mux');
  definitions.check('/state/recordings/tv.mux');
  expect(() => definitions.check('/srv/media/tv.mux')).toThrow('AllowedRoots');
  expect(definitionFolders(config(''), '/state').bounded).toBe(false);
});

test('ports of ranges', () => {
  const ports = {
    protocol: 'udp',
    ranges: [
      { first: 4000, last: 4002 },
      { first: 5000, last: 5000 },
    ],
  };
  expect(portsOf(ports)).toEqual([4000, 4001, 4002, 5000]);
  const near = [3999, 4000, 4001, 4002, 4003, 4999, 5000, 5001];
  expect(near.filter((port) => includesPort(ports, port))).toEqual(portsOf(ports));
});

test('a key that servers share for OVT is read for both ends, and is not short', () => {
  const bound = (key: string, side: 'Publishers' | 'Providers') =>
    parseServerConfig(
      `<Server version="8"><Type>origin</Type><IP>*</IP><Bind><${side}><OVT><SecretKey>${key}</SecretKey></OVT></${side}></Bind></Server>`,
      'S.xml',
    ).config.bind;
  expect(bound('sixteen letters!', 'Publishers').publishers.ovt?.secretKey).toBe('sixteen letters!');
  expect(bound('sixteen letters!', 'Providers').providers.ovt?.secretKey).toBe('sixteen letters!');
  for (const side of ['Publishers', 'Providers'] as const) {
    expect(() => bound('fifteen letters', side)).toThrow('ovt.secretKey must have at least 16 characters, but has 15');
  }
});
