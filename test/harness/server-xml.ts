/** Writes the Server.xml of a test. */

export interface ServerPorts {
  readonly rtmp: number;
  /** LL-HLS and HLS. */
  readonly http: number;
  readonly api: number;
  /** UDP and TCP for media of WebRTC. */
  readonly ice: number;
  /** TCP port of the TURN relay. */
  readonly relay: number;
}

/** Settings that a test may change; durations in seconds. */
export interface ServerSettings {
  /** `IP` elements; WebRTC media is then offered on `*`. Default: only 127.0.0.1. */
  readonly ips?: readonly string[];
  /** Host names of the virtual host `default`. */
  readonly hostNames?: readonly string[];
  readonly accessToken?: string;
  /** Origins whose pages may use the API; default: the server's default, which is none here. */
  readonly apiOrigins?: readonly string[];
  /** `Token` elements of `AccessTokens`. */
  readonly accessTokens?: string;
  /** A separate port for `/metrics`, and the contents of `Managers/Metrics`. */
  readonly metrics?: { readonly port?: number; readonly settings?: string };
  /** Elements of the server itself, e.g. `Limits`. */
  readonly head?: string;
  /** TLS ports of RTMP, of LL-HLS and of the API; a `TLS` element for the virtual host, and one for the API. */
  readonly tls?: { readonly rtmp: number; readonly http: number; readonly api?: number; readonly host?: string; readonly apiHost?: string };
  /** `PrivacyProtection`. */
  readonly privacyProtection?: boolean;
  readonly chunkDuration?: number;
  readonly segmentDuration?: number;
  readonly segmentCount?: number;
  /** LL-HLS without viewer sessions. */
  readonly originMode?: boolean;
  /** Segments of plain HLS. */
  readonly hlsSegmentDuration?: number;
  readonly hlsSegmentCount?: number;
  /** UDP port for MPEG-TS; its stream is `ts`. */
  readonly mpegtsPort?: number;
  /** Settings of the PUSH publisher as XML, possibly empty; absent: no such publisher. */
  readonly push?: string;
  /** Omits LL-HLS from the application. */
  readonly withoutLlhls?: boolean;
  /** Omits plain HLS from the application. */
  readonly withoutHls?: boolean;
  /** Folder of the FILE publisher; absent: no such publisher. */
  readonly recordRoot?: string;
  /** `Retention` of the FILE publisher. */
  readonly retention?: string;
  /** More elements of the application's providers. */
  readonly providers?: string;
  /** Content of the application's FILE provider; absent: no such provider. */
  readonly fileProvider?: string;
  /** `Origins` of the virtual host. */
  readonly origins?: string;
  /** `MediaOptions` of the output profiles. */
  readonly mediaOptions?: string;
  /** Further elements of the application, after its publishers. */
  readonly application?: string;
  /** WebRTC in and out, on the HTTP port, with the elements in the application. */
  readonly webrtc?: {
    readonly publisher?: string;
    readonly provider?: string;
    /** Media over `[::1]`, too. */
    readonly ipv6?: boolean;
  };
  /** OVT port for edges. Without it nothing is served over OVT, but pulls work. */
  readonly ovtPort?: number;
  /** As `ovtPort`, with TLS by the certificate of the virtual host. */
  readonly ovtTlsPort?: number;
  /** Authority that verifies origins with TLS. */
  readonly ovtCa?: string;
  /** SRT ports, in and out, and options of both listeners; absent: no SRT. */
  readonly srt?: { readonly ingest: number; readonly egress: number; readonly options?: Readonly<Record<string, string>> };
}

export const ACCESS_TOKEN = 'test:token';

/** One virtual host `default` with one application `app` that bypasses everything. */
export function serverXml(ports: ServerPorts, settings: ServerSettings = {}): string {
  const chunk = settings.chunkDuration ?? 0.5;
  const names = (settings.hostNames ?? ['*']).map((name) => `<Name>${name}</Name>`).join('');
  const llhls = `<LLHLS>
              <ChunkDuration>${chunk}</ChunkDuration>
              <PartHoldBack>${chunk * 3}</PartHoldBack>
              <SegmentDuration>${settings.segmentDuration ?? 2}</SegmentDuration>
              <SegmentCount>${settings.segmentCount ?? 5}</SegmentCount>
              <OriginMode>${settings.originMode === true}</OriginMode>
              <CrossDomains><Url>*</Url></CrossDomains>
            </LLHLS>`;
  const hls = `<HLS>
              <SegmentDuration>${settings.hlsSegmentDuration ?? 2}</SegmentDuration>
              <SegmentCount>${settings.hlsSegmentCount ?? 4}</SegmentCount>
              <CrossDomains><Url>*</Url></CrossDomains>
            </HLS>`;
  const file =
    settings.recordRoot === undefined ? '' : `<FILE><RootPath>${settings.recordRoot}</RootPath>${settings.retention ?? ''}</FILE>`;
  const { srt } = settings;
  const srtOptions = Object.entries(srt?.options ?? {}).map(([key, value]) => `<Option><Key>${key}</Key><Value>${value}</Value></Option>`);
  const bindSrt = (port: number | undefined): string =>
    port === undefined ? '' : `<SRT><Port>${port}/srt</Port><Options>${srtOptions.join('')}</Options></SRT>`;
  const tlsPort = (port: number | undefined): string => (port === undefined ? '' : `<TLSPort>${port}</TLSPort>`);
  const metricsPort = settings.metrics?.port === undefined ? '' : `<Metrics><Port>${settings.metrics.port}</Port></Metrics>`;
  const { mpegtsPort } = settings;
  const mpegtsBind = mpegtsPort === undefined ? '' : `<MPEGTS><Port>${mpegtsPort}/udp</Port></MPEGTS>`;
  const mpegts =
    mpegtsPort === undefined
      ? ''
      : `<MPEGTS><StreamMap><Stream><Name>ts</Name><Port>${mpegtsPort}/udp</Port></Stream></StreamMap></MPEGTS>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<Server version="8">
  <Name>Millrace</Name>
  <Type>origin</Type>
  ${(settings.ips ?? ['127.0.0.1']).map((ip) => `<IP>${ip}</IP>`).join('')}
  <PrivacyProtection>${settings.privacyProtection === true}</PrivacyProtection>
  ${settings.head ?? ''}
  <Bind>
    <Managers><API><Port>${ports.api}</Port>${tlsPort(settings.tls?.api)}</API>${metricsPort}</Managers>
    <Providers>
      <RTMP><Port>${ports.rtmp}</Port>${tlsPort(settings.tls?.rtmp)}</RTMP>${mpegtsBind}${bindSrt(srt?.ingest)}
      ${settings.ovtCa === undefined ? '' : `<OVT><CaPath>${settings.ovtCa}</CaPath></OVT>`}
      ${settings.webrtc === undefined ? '' : webrtcBind(ports, settings)}
    </Providers>
    <Publishers>
      <LLHLS><Port>${ports.http}</Port>${tlsPort(settings.tls?.http)}</LLHLS>
      <HLS><Port>${ports.http}</Port></HLS>
      ${settings.webrtc === undefined ? '' : webrtcBind(ports, settings)}
      ${bindSrt(srt?.egress)}
      ${servesOvt(settings) ? `<OVT>${ovtPorts(settings)}</OVT>` : ''}
    </Publishers>
  </Bind>
  <Managers>
    <Host><Names><Name>*</Name></Names>${settings.tls?.apiHost ?? ''}</Host>
    <API><AccessToken>${settings.accessToken ?? ACCESS_TOKEN}</AccessToken><AccessTokens>${settings.accessTokens ?? ''}</AccessTokens>${crossDomains(settings.apiOrigins)}</API>
    <Metrics>${settings.metrics?.settings ?? ''}</Metrics>
  </Managers>
  <VirtualHosts>
    <VirtualHost>
      <Name>default</Name>
      <Host><Names>${names}</Names>${settings.tls?.host ?? ''}</Host>
      ${settings.origins ?? ''}
      <Applications>
        <Application>
          <Name>app</Name>
          <Type>live</Type>
          <OutputProfiles>
            ${settings.mediaOptions ?? ''}
            <OutputProfile>
              <Name>bypass</Name>
              <OutputStreamName>\${OriginStreamName}</OutputStreamName>
              <Encodes>
                <Video><Name>bypass_video</Name><Bypass>true</Bypass></Video>
                <Audio><Name>bypass_audio</Name><Bypass>true</Bypass></Audio>
              </Encodes>
            </OutputProfile>
          </OutputProfiles>
          <Providers>
            <RTMP /><RTSPPull /><OVT />${mpegts}${srt === undefined ? '' : '<SRT />'}
            ${settings.providers ?? ''}
            ${settings.fileProvider === undefined ? '' : `<FILE>${settings.fileProvider}</FILE>`}
            ${settings.webrtc === undefined ? '' : `<WebRTC>${settings.webrtc.provider ?? ''}</WebRTC>`}
          </Providers>
          <Publishers>
            ${settings.withoutLlhls === true ? '' : llhls}
            ${settings.withoutHls === true ? '' : hls}
            ${file}
            ${settings.webrtc === undefined ? '' : `<WebRTC>${settings.webrtc.publisher ?? ''}</WebRTC>`}
            ${srt === undefined ? '' : '<SRT />'}
            ${servesOvt(settings) ? '<OVT />' : ''}
            ${settings.push === undefined ? '' : `<Push>${settings.push}</Push>`}
          </Publishers>
          ${settings.application ?? ''}
        </Application>
      </Applications>
    </VirtualHost>
  </VirtualHosts>
</Server>
`;
}

function servesOvt({ ovtPort, ovtTlsPort }: ServerSettings): boolean {
  return ovtPort !== undefined || ovtTlsPort !== undefined;
}

function ovtPorts({ ovtPort, ovtTlsPort }: ServerSettings): string {
  const plain = ovtPort === undefined ? '' : `<Port>${ovtPort}</Port>`;
  return plain + (ovtTlsPort === undefined ? '' : `<TLSPort>${ovtTlsPort}</TLSPort>`);
}

function crossDomains(origins: readonly string[] | undefined): string {
  return origins === undefined ? '' : `<CrossDomains>${origins.map((origin) => `<Url>${origin}</Url>`).join('')}</CrossDomains>`;
}

function webrtcBind(ports: ServerPorts, { webrtc, tls, ips }: ServerSettings): string {
  const host = ips === undefined ? '127.0.0.1' : '*';
  const tlsPort = tls === undefined ? '' : `<TLSPort>${tls.http}</TLSPort>`;
  return `<WebRTC>
        <Signalling><Port>${ports.http}</Port>${tlsPort}</Signalling>
        <IceCandidates>
          <IceCandidate>${host}:${ports.ice}/udp</IceCandidate>
          ${webrtc?.ipv6 === true ? `<IceCandidate>[::1]:${ports.ice}/udp</IceCandidate>` : ''}
          <TcpRelay>${host}:${ports.relay}</TcpRelay>
        </IceCandidates>
      </WebRTC>`;
}
