// SRTP on its own for JavaScript, for comparison with another implementation.
#include <memory>
#include <vector>

#include "bindings.h"
#include "bytes.h"
#include "napi_export.h"
#include "srtp.h"

namespace millrace {
namespace {

// A cipher for one direction.
struct Protector {
  SrtpCipher rtp;
  SrtpCipher rtcp;
  SrtpReceiver receiver;
};

// srtpOpen(profile, key, salt) → handle
napi_value OpenSrtp(const Arguments& arguments) {
  const uint32_t number = arguments.Unsigned(0);
  if (number != 1 && number != 7) throw BadArgument{"srtpOpen: unknown SRTP profile"};
  const auto profile = static_cast<Profile>(number);
  const Bytes key = arguments.Buffer(1);
  const Bytes salt = arguments.Buffer(2);
  if (key.length != kMasterKeyLength || salt.length != SaltLength(profile)) throw BadArgument{"srtpOpen: key or salt has the wrong length"};
  auto protector = std::make_unique<Protector>();
  if (!protector->rtp.Init(profile, key.data, salt.data, 0, true) || !protector->rtcp.Init(profile, key.data, salt.data, 3, true) ||
      !protector->receiver.Init(profile, key.data, salt.data))
    throw BadArgument{"srtpOpen: the cipher cannot be used"};
  napi_value handle = nullptr;
  napi_create_external(arguments.env(), protector.release(), [](napi_env, void* data, void*) { delete static_cast<Protector*>(data); },
                       nullptr, &handle);
  return handle;
}

// srtpProtect(handle, packet, index) → packet; the index of RTP has the roll-over counter above its 16 bits
napi_value Protect(const Arguments& arguments) {
  auto* protector = arguments.External<Protector>(0);
  const Bytes bytes = arguments.Buffer(1);
  const auto index = static_cast<uint64_t>(arguments.Number(2));
  const bool rtcp = bytes.length >= 2 && bytes.data[1] >= 192 && bytes.data[1] <= 223;
  const size_t header = RtpHeaderLength(bytes.data, bytes.length);
  if (rtcp ? bytes.length < 8 : header == 0) throw BadArgument{"srtpProtect: this is no RTP or RTCP packet"};
  std::vector<uint8_t> packet(bytes.data, bytes.data + bytes.length);
  packet.resize(bytes.length + kRtcpOverhead);
  const size_t length = rtcp ? protector->rtcp.EncryptRtcp(packet.data(), bytes.length, static_cast<uint32_t>(index))
                             : protector->rtp.EncryptRtp(packet.data(), header, bytes.length, Read32(bytes.data + 8), index);
  return MakeBuffer(arguments.env(), packet.data(), length);
}

// srtpUnprotect(handle, packet) → packet, or the number of the error (see `Unprotected`)
napi_value Unprotect(const Arguments& arguments) {
  auto* protector = arguments.External<Protector>(0);
  const Bytes bytes = arguments.Buffer(1);
  std::vector<uint8_t> packet(bytes.data, bytes.data + bytes.length);
  const bool rtcp = bytes.length >= 2 && bytes.data[1] >= 192 && bytes.data[1] <= 223;
  size_t plain = 0;
  const Unprotected result = rtcp ? protector->receiver.Rtcp(packet.data(), packet.size(), &plain)
                                  : protector->receiver.Rtp(packet.data(), packet.size(), &plain);
  if (result != Unprotected::kOk) return MakeNumber(arguments.env(), static_cast<double>(result));
  return MakeBuffer(arguments.env(), packet.data(), plain);
}

}  // namespace

void ExportSrtp(napi_env env, napi_value exports) {
  Export<OpenSrtp>(env, exports, "srtpOpen");
  Export<Protect>(env, exports, "srtpProtect");
  Export<Unprotect>(env, exports, "srtpUnprotect");
}

}  // namespace millrace
