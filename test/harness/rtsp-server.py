"""GStreamer's RTSP server on free loopback ports: prints three ports (open, Digest, Basic), then serves until it is ended."""
import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

VIDEO = "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1 ! "
H264 = VIDEO + "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! rtph264pay name=pay0 pt=96 config-interval=1 "
B_FRAMES = VIDEO + "x264enc bframes=2 b-adapt=false speed-preset=ultrafast key-int-max=25 ! video/x-h264,profile=main ! rtph264pay name=pay0 pt=96 "
H265 = VIDEO + "x265enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! rtph265pay name=pay0 pt=96 "
VP8 = VIDEO + "vp8enc deadline=1 keyframe-max-dist=25 ! rtpvp8pay name=pay0 pt=96 "
SOUND = "audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! "
AAC = SOUND + "voaacenc ! aacparse ! rtpmp4gpay name=pay1 pt=97 "
OPUS = SOUND + "opusenc ! rtpopuspay name=pay1 pt=97 "
G711 = "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay1 pt=0 "

STREAMS = {
    "/h264-aac": H264 + AAC,
    "/h264": H264,
    "/b-frames": B_FRAMES,
    "/h265-opus": H265 + OPUS,
    "/vp8": VP8,
    "/g711": H264 + G711,
    "/udp": H264 + AAC,
}




def serve(auth):
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    mounts = server.get_mount_points()
    for path, pipeline in STREAMS.items():
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch("( " + pipeline + ")")
        factory.set_shared(True)
        if path == "/udp":
            factory.set_protocols(GstRtsp.RTSPLowerTrans.UDP)
        if auth is not None:
            permissions = GstRtspServer.RTSPPermissions()
            permissions.add_permission_for_role("user", "media.factory.access", True)
            permissions.add_permission_for_role("user", "media.factory.construct", True)
            factory.set_permissions(permissions)
        mounts.add_factory(path, factory)
    if auth is not None:
        server.set_auth(auth)
    server.attach(None)
    return server


def login(method):
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.set_supported_methods(method)
    if method == GstRtsp.RTSPAuthMethod.DIGEST:
        auth.add_digest("user", "pass:word", token)
    else:
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic("user", "pass:word"), token)
    return auth


def main():
    Gst.init(None)
    servers = [serve(None), serve(login(GstRtsp.RTSPAuthMethod.DIGEST)), serve(login(GstRtsp.RTSPAuthMethod.BASIC))]
    print(*[server.get_bound_port() for server in servers], flush=True)
    GLib.MainLoop().run()


main()
