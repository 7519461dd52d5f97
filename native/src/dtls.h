// DTLS 1.2 with DTLS-SRTP keys (RFC 5764) over datagrams that the caller sends and receives.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtls_tail.h"
#include "srtp.h"

namespace millrace {

struct ContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, ContextFree>;

// A context for a certificate and key in PEM; null with `error` set when they are unusable.
SslContext MakeDtlsContext(const std::string& certificate, const std::string& key, std::string* error);

struct DtlsKeys {
  Profile profile;
  uint8_t local_key[kMasterKeyLength];
  uint8_t local_salt[kMaxSaltLength];
  uint8_t remote_key[kMasterKeyLength];
  uint8_t remote_salt[kMaxSaltLength];
};

class Dtls {
 public:
  enum class State { kHandshake, kConnected, kClosed };

  // Holds its own reference to `context`.
  Dtls(SSL_CTX* context, bool server);
  ~Dtls();
  Dtls(const Dtls&) = delete;
  Dtls& operator=(const Dtls&) = delete;

  // Takes one datagram of the peer, or begins as client without one. Answers are in `outbox` afterwards.
  void Receive(const uint8_t* data, size_t length);
  // Resends a lost flight when it is due.
  void Tick();
  // Sends the closing alert to the peer.
  void Close();

  State state() const { return state_; }
  const std::string& error() const { return error_; }
  std::vector<std::string>& outbox() { return outbox_; }
  // Only when connected. False without an SRTP profile.
  bool ExportKeys(DtlsKeys* keys) const;
  // SHA-256 of the peer's certificate, 32 bytes; empty without a certificate.
  std::string PeerFingerprint() const;
  // Frees the handshake, once keys and fingerprint have been read.
  void Settle();

 private:
  void Advance();
  void Fail(const std::string& what);
  // Frees the state of the handshake, some 50 KiB; not during a call of OpenSSL. The Dtls object may live much longer.
  void Release();

  SSL* ssl_;
  bool server_;
  State state_ = State::kHandshake;
  std::string error_;
  // The datagram being read; the record layer takes all of it.
  const uint8_t* inbox_ = nullptr;
  size_t inbox_length_ = 0;
  std::vector<std::string> outbox_;
  // The last flight of a server's handshake.
  std::vector<std::string> last_flight_;
  // Replaces `ssl_` after the handshake.
  std::unique_ptr<DtlsTail> tail_;

  static int BioWrite(BIO* bio, const char* data, int length);
  static int BioRead(BIO* bio, char* data, int length);
  static long BioControl(BIO* bio, int command, long number, void* pointer);
  static BIO_METHOD* Method();
};

}  // namespace millrace
