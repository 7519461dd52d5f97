// DTLS of one peer for JavaScript: each step returns the datagrams to send.
#include <string>

#include "bindings.h"
#include "dtls.h"
#include "napi_export.h"

namespace millrace {
namespace {

// dtlsContext(certificatePem, keyPem) → handle
napi_value MakeContext(const Arguments& arguments) {
  napi_env env = arguments.env();
  std::string error;
  SslContext context = MakeDtlsContext(arguments.Text(0), arguments.Text(1), &error);
  if (!context) {
    napi_throw_error(env, "DTLS_CERTIFICATE", error.c_str());
    return nullptr;
  }
  napi_value handle = nullptr;
  napi_create_external(env, context.release(), [](napi_env, void* data, void*) { SSL_CTX_free(static_cast<SSL_CTX*>(data)); }, nullptr, &handle);
  return handle;
}

// dtlsOpen(context, server) → handle
napi_value OpenDtls(const Arguments& arguments) {
  napi_value handle = nullptr;
  auto* dtls = new Dtls(arguments.External<SSL_CTX>(0), arguments.Boolean(1));
  napi_create_external(arguments.env(), dtls, [](napi_env, void* data, void*) { delete static_cast<Dtls*>(data); }, nullptr, &handle);
  return handle;
}

// The result of a step: { state, error, datagrams }.
napi_value Outcome(napi_env env, Dtls* dtls) {
  napi_value object = nullptr;
  napi_value list = nullptr;
  napi_create_object(env, &object);
  napi_create_array_with_length(env, dtls->outbox().size(), &list);
  uint32_t at = 0;
  for (const std::string& datagram : dtls->outbox()) {
    napi_set_element(env, list, at, MakeBuffer(env, datagram.data(), datagram.size()));
    at += 1;
  }
  dtls->outbox().clear();
  Set(env, object, "state", static_cast<double>(dtls->state()));
  Set(env, object, "error", MakeText(env, dtls->error()));
  Set(env, object, "datagrams", list);
  return object;
}

// dtlsReceive(dtls, datagram); an empty datagram begins a handshake as client.
napi_value ReceiveDtls(const Arguments& arguments) {
  auto* dtls = arguments.External<Dtls>(0);
  const Bytes bytes = arguments.Buffer(1);
  dtls->Receive(bytes.length == 0 ? nullptr : bytes.data, bytes.length);
  return Outcome(arguments.env(), dtls);
}
napi_value TickDtls(const Arguments& arguments) {
  auto* dtls = arguments.External<Dtls>(0);
  dtls->Tick();
  return Outcome(arguments.env(), dtls);
}
napi_value CloseDtls(const Arguments& arguments) {
  auto* dtls = arguments.External<Dtls>(0);
  dtls->Close();
  return Outcome(arguments.env(), dtls);
}

// dtlsKeys(dtls) → { profile, localKey, localSalt, remoteKey, remoteSalt, fingerprint } or null; once
napi_value ExportKeys(const Arguments& arguments) {
  napi_env env = arguments.env();
  auto* dtls = arguments.External<Dtls>(0);
  DtlsKeys keys = {};
  napi_value object = nullptr;
  if (!dtls->ExportKeys(&keys)) {
    napi_get_null(env, &object);
    return object;
  }
  const size_t salt = SaltLength(keys.profile);
  const std::string fingerprint = dtls->PeerFingerprint();
  dtls->Settle();
  napi_create_object(env, &object);
  Set(env, object, "profile", static_cast<double>(keys.profile));
  Set(env, object, "localKey", MakeBuffer(env, keys.local_key, kMasterKeyLength));
  Set(env, object, "localSalt", MakeBuffer(env, keys.local_salt, salt));
  Set(env, object, "remoteKey", MakeBuffer(env, keys.remote_key, kMasterKeyLength));
  Set(env, object, "remoteSalt", MakeBuffer(env, keys.remote_salt, salt));
  Set(env, object, "fingerprint", MakeBuffer(env, fingerprint.data(), fingerprint.size()));
  OPENSSL_cleanse(&keys, sizeof keys);
  return object;
}

}  // namespace

void ExportDtls(napi_env env, napi_value exports) {
  Export<MakeContext>(env, exports, "dtlsContext");
  Export<OpenDtls>(env, exports, "dtlsOpen");
  Export<ReceiveDtls>(env, exports, "dtlsReceive");
  Export<TickDtls>(env, exports, "dtlsTick");
  Export<CloseDtls>(env, exports, "dtlsClose");
  Export<ExportKeys>(env, exports, "dtlsKeys");
}

}  // namespace millrace
