#include "dtls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

// Fits every network path that can carry WebRTC.
constexpr long kMtu = 1200;
// A peer that causes more datagrams than this in one step is not doing a handshake.
constexpr size_t kMaxOutbox = 64;
constexpr char kExporterLabel[] = "EXTRACTOR-dtls_srtp";

std::string LastError(const char* what) {
  char text[256] = "";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return code == 0 ? std::string(what) : std::string(what) + ": " + text;
}

// Certificates are self-signed: the owner checks the signalled fingerprint instead (RFC 8122).
int AcceptAny(int, X509_STORE_CTX*) { return 1; }

}  // namespace

SslContext MakeDtlsContext(const std::string& certificate, const std::string& key, std::string* error) {
  SslContext context(SSL_CTX_new(DTLS_method()));
  BIO* certificate_bio = BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size()));
  BIO* key_bio = BIO_new_mem_buf(key.data(), static_cast<int>(key.size()));
  X509* parsed = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  EVP_PKEY* parsed_key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  const bool ok = context && parsed != nullptr && parsed_key != nullptr &&
                  SSL_CTX_set_min_proto_version(context.get(), DTLS1_2_VERSION) == 1 &&
                  SSL_CTX_use_certificate(context.get(), parsed) == 1 && SSL_CTX_use_PrivateKey(context.get(), parsed_key) == 1 &&
                  SSL_CTX_set_cipher_list(context.get(), "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
                                                         "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA") == 1 &&
                  // This function returns 0 on success.
                  SSL_CTX_set_tlsext_use_srtp(context.get(), "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") == 0;
  if (!ok) *error = LastError("the certificate or its key cannot be used");
  X509_free(parsed);
  EVP_PKEY_free(parsed_key);
  BIO_free(certificate_bio);
  BIO_free(key_bio);
  if (!ok) return nullptr;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, AcceptAny);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

BIO_METHOD* Dtls::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "millrace datagrams");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

int Dtls::BioWrite(BIO* bio, const char* data, int length) {
  auto* self = static_cast<Dtls*>(BIO_get_data(bio));
  if (self->outbox_.size() < kMaxOutbox) self->outbox_.emplace_back(data, static_cast<size_t>(length));
  return length;
}

int Dtls::BioRead(BIO* bio, char* data, int length) {
  auto* self = static_cast<Dtls*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self->inbox_ == nullptr) {
    BIO_set_retry_read(bio);
    return -1;
  }
  // A datagram is read once; bytes that do not fit are lost, as with a socket.
  const size_t taken = std::min(self->inbox_length_, static_cast<size_t>(length));
  memcpy(data, self->inbox_, taken);
  self->inbox_ = nullptr;
  return static_cast<int>(taken);
}

long Dtls::BioControl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

Dtls::Dtls(SSL_CTX* context, bool server) : ssl_(SSL_new(context)), server_(server) {
  BIO* bio = BIO_new(Method());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    Fail("out of memory");
    return;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_mtu(ssl_, kMtu);
  if (server) SSL_set_accept_state(ssl_);
  else SSL_set_connect_state(ssl_);
}

Dtls::~Dtls() { SSL_free(ssl_); }

void Dtls::Receive(const uint8_t* data, size_t length) {
  if (state_ == State::kClosed) return;
  if (tail_) {
    if (tail_->Receive(data, length, &outbox_)) state_ = State::kClosed;
    return;
  }
  ERR_clear_error();
  inbox_ = data;
  inbox_length_ = length;
  Advance();
  inbox_ = nullptr;
  if (state_ == State::kClosed) Release();
}

void Dtls::Advance() {
  if (state_ == State::kHandshake) {
    const int result = SSL_do_handshake(ssl_);
    if (result == 1) {
      state_ = State::kConnected;
      if (server_) last_flight_ = outbox_;
    } else {
      const int error = SSL_get_error(ssl_, result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) Fail(LastError("the handshake failed"));
      return;
    }
  }
  // No application data is expected; reading sees close_notify and repeated flights.
  char scratch[256];
  while (state_ == State::kConnected) {
    const int result = SSL_read(ssl_, scratch, sizeof scratch);
    if (result > 0) continue;
    const int error = SSL_get_error(ssl_, result);
    if (error == SSL_ERROR_ZERO_RETURN) state_ = State::kClosed;
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) Fail(LastError("the connection failed"));
    break;
  }
}

void Dtls::Tick() {
  if (state_ != State::kHandshake || ssl_ == nullptr) return;
  ERR_clear_error();
  if (DTLSv1_handle_timeout(ssl_) >= 0) return;
  Fail(LastError("the peer did not answer"));
  Release();
}

void Dtls::Close() {
  if (state_ == State::kConnected) {
    ERR_clear_error();
    if (tail_) outbox_.push_back(tail_->CloseNotify());
    else SSL_shutdown(ssl_);
  }
  state_ = State::kClosed;
  Release();
}

void Dtls::Settle() {
  if (state_ != State::kConnected || tail_) return;
  tail_ = DtlsTail::Of(ssl_, server_, std::move(last_flight_));
  if (tail_) Release();
}

void Dtls::Release() {
  SSL_free(ssl_);
  ssl_ = nullptr;
}

void Dtls::Fail(const std::string& what) {
  state_ = State::kClosed;
  error_ = what;
}

bool Dtls::ExportKeys(DtlsKeys* keys) const {
  const SRTP_PROTECTION_PROFILE* profile = ssl_ == nullptr ? nullptr : SSL_get_selected_srtp_profile(ssl_);
  if (state_ != State::kConnected || profile == nullptr) return false;
  if (profile->id != static_cast<unsigned long>(Profile::kAesCm128Sha1_80) &&
      profile->id != static_cast<unsigned long>(Profile::kAeadAes128Gcm))
    return false;
  keys->profile = static_cast<Profile>(profile->id);
  const size_t salt = SaltLength(keys->profile);
  uint8_t material[2 * (kMasterKeyLength + kMaxSaltLength)];
  if (SSL_export_keying_material(ssl_, material, 2 * (kMasterKeyLength + salt), kExporterLabel, sizeof kExporterLabel - 1, nullptr, 0,
                                 0) != 1)
    return false;
  // Client key, server key, client salt, server salt (RFC 5764 section 4.2).
  const uint8_t* client_salt = material + 2 * kMasterKeyLength;
  memcpy(server_ ? keys->remote_key : keys->local_key, material, kMasterKeyLength);
  memcpy(server_ ? keys->local_key : keys->remote_key, material + kMasterKeyLength, kMasterKeyLength);
  memcpy(server_ ? keys->remote_salt : keys->local_salt, client_salt, salt);
  memcpy(server_ ? keys->local_salt : keys->remote_salt, client_salt + salt, salt);
  OPENSSL_cleanse(material, sizeof material);
  return true;
}

std::string Dtls::PeerFingerprint() const {
  X509* certificate = ssl_ == nullptr ? nullptr : SSL_get1_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  const bool ok = X509_digest(certificate, EVP_sha256(), digest, &length) == 1;
  X509_free(certificate);
  return ok ? std::string(reinterpret_cast<char*>(digest), length) : std::string();
}

}  // namespace millrace
