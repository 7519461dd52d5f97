#include "tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

// Maximum content of a record (RFC 8446 section 5.1).
constexpr size_t kRecord = 16 * 1024;
// Encrypted bytes collected for one system call.
constexpr size_t kBatch = 8 * kRecord;
constexpr unsigned char kSessionContext[] = "millrace";

// The buffers of one call from JavaScript: each call leaves both empty.
thread_local std::vector<uint8_t> staged;
thread_local std::vector<uint8_t> out;

std::string LastError(const char* what) {
  char text[256] = "";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return code == 0 ? std::string(what) : std::string(what) + ": " + text;
}

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPointer = std::unique_ptr<BIO, BioFree>;

BioPointer Memory(const std::string& text) { return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// No passphrase: a key with a passphrase is unusable, because there is no operator to enter it.
int NoPassphrase(char*, int, int, void*) { return 0; }

bool UseCertificate(SSL_CTX* context, const TlsContextOptions& options) {
  const BioPointer certificates = Memory(options.certificate);
  X509* leaf = PEM_read_bio_X509_AUX(certificates.get(), nullptr, NoPassphrase, nullptr);
  if (leaf == nullptr) return false;
  bool ok = SSL_CTX_use_certificate(context, leaf) == 1;
  X509_free(leaf);
  while (ok) {
    X509* link = PEM_read_bio_X509(certificates.get(), nullptr, NoPassphrase, nullptr);
    if (link == nullptr) break;
    ok = SSL_CTX_add0_chain_cert(context, link) == 1;
    if (!ok) X509_free(link);
  }
  if (!ok) return false;
  // OpenSSL reports the end of the text as an error.
  ERR_clear_error();
  const BioPointer keys = Memory(options.key);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(keys.get(), nullptr, NoPassphrase, nullptr);
  ok = key != nullptr && SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(key);
  return ok;
}

}  // namespace

TlsContext MakeTlsContext(const TlsContextOptions& options, std::string* error) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  const bool ok = context && SSL_CTX_set_min_proto_version(context.get(), options.oldest) == 1 &&
                  (options.ciphers.empty() || SSL_CTX_set_cipher_list(context.get(), options.ciphers.c_str()) == 1) &&
                  (options.suites.empty() || SSL_CTX_set_ciphersuites(context.get(), options.suites.c_str()) == 1) &&
                  (options.groups.empty() || SSL_CTX_set1_groups_list(context.get(), options.groups.c_str()) == 1) &&
                  SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof kSessionContext - 1) == 1 &&
                  (options.certificate.empty() || UseCertificate(context.get(), options));
  if (!ok) {
    *error = LastError("the certificate or its key cannot be used");
    return nullptr;
  }
  // Sessions are resumed by tickets only: clients keep them, the server keeps nothing.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_SINGLE_ECDH_USE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle viewer holds no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_tlsext_servername_callback(context.get(), TlsSession::ChooseContext);
  static char with_http2 = 1;
  SSL_CTX_set_alpn_select_cb(context.get(), TlsSession::ChooseProtocol, options.http2 ? &with_http2 : nullptr);
  return context;
}

BIO_METHOD* TlsSession::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "millrace stream");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

int TlsSession::BioWrite(BIO* bio, const char* data, int length) {
  auto* self = static_cast<TlsSession*>(BIO_get_data(bio));
  if (self->blocked_) self->rest_.append(data, static_cast<size_t>(length));
  else out.insert(out.end(), data, data + length);
  return length;
}

int TlsSession::BioRead(BIO* bio, char* data, int length) {
  auto* self = static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self->inbox_length_ == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const size_t taken = std::min(self->inbox_length_, static_cast<size_t>(length));
  memcpy(data, self->inbox_, taken);
  self->inbox_ += taken;
  self->inbox_length_ -= taken;
  return static_cast<int>(taken);
}

long TlsSession::BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

int TlsSession::ChooseContext(SSL* ssl, int* alert, void*) {
  auto* self = static_cast<TlsSession*>(BIO_get_data(SSL_get_rbio(ssl)));
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  SSL_CTX* context = self->choose_ == nullptr || name == nullptr ? nullptr : (*self->choose_)(name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  if (context == nullptr) {
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  SSL_set_SSL_CTX(ssl, context);
  return SSL_TLSEXT_ERR_OK;
}

int TlsSession::ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_length, const unsigned char* offered,
                               unsigned int offered_length, void* http2) {
  static const unsigned char kBoth[] = "\x02h2\x08http/1.1";
  const unsigned char* ours = http2 == nullptr ? kBoth + 3 : kBoth;
  const auto length = static_cast<unsigned int>(sizeof kBoth - 1 - (http2 == nullptr ? 3 : 0));
  const int result = SSL_select_next_proto(const_cast<unsigned char**>(chosen), chosen_length, ours, length, offered, offered_length);
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

TlsSession::TlsSession(SSL_CTX* context, int descriptor) : ssl_(SSL_new(context)), descriptor_(descriptor) {
  BIO* bio = BIO_new(Method());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    Fail("out of memory");
    return;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

bool TlsSession::speaks_http2() const {
  const unsigned char* chosen = nullptr;
  unsigned int length = 0;
  SSL_get0_alpn_selected(ssl_, &chosen, &length);
  return length == 2 && memcmp(chosen, "h2", 2) == 0;
}

void TlsSession::Push(const uint8_t* data, size_t length, const Choose* choose) {
  inbox_ = data;
  inbox_length_ = length;
  choose_ = choose;
}

size_t TlsSession::Read(uint8_t* into, size_t length) {
  ERR_clear_error();
  if (state_ == State::kHandshake) {
    const int result = SSL_do_handshake(ssl_);
    const int error = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_, result);
    if (result == 1) state_ = State::kOpen;
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) Fail("the handshake failed");
  }
  size_t got = 0;
  if (state_ == State::kOpen && SSL_read_ex(ssl_, into, length, &got) != 1) {
    got = 0;
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_ZERO_RETURN) state_ = State::kEnded;
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) Fail("the connection failed");
  }
  if (got == 0) {
    inbox_ = nullptr;
    inbox_length_ = 0;
    choose_ = nullptr;
  }
  return got;
}

void TlsSession::Write(const uint8_t* data, size_t length) {
  if (!staged.empty() && staged.size() + length > kRecord) EncryptStaged();
  if (length < kRecord && staged.size() + length < kRecord) {
    staged.insert(staged.end(), data, data + length);
    return;
  }
  if (!staged.empty()) {
    staged.insert(staged.end(), data, data + length);
    EncryptStaged();
    return;
  }
  Encrypt(data, length);
}

void TlsSession::Flush() {
  EncryptStaged();
  SendOut();
}

void TlsSession::EncryptStaged() {
  if (staged.empty()) return;
  Encrypt(staged.data(), staged.size());
  staged.clear();
}

void TlsSession::Encrypt(const uint8_t* data, size_t length) {
  // After a failure nothing can be sent.
  if (state_ == State::kFailed || state_ == State::kHandshake || descriptor_ < 0 || length == 0) return;
  ERR_clear_error();
  size_t written = 0;
  if (SSL_write_ex(ssl_, data, length, &written) != 1) Fail("the connection failed");
  if (out.size() >= kBatch) SendOut();
}

void TlsSession::SendOut() {
  if (out.empty()) return;
  size_t sent = 0;
  while (descriptor_ >= 0 && sent < out.size()) {
    const ssize_t result = send(descriptor_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result > 0) sent += static_cast<size_t>(result);
    else if (errno != EINTR) break;
  }
  // Node.js finds errors itself, because it gets the bytes next.
  if (sent < out.size() && descriptor_ >= 0) {
    rest_.append(reinterpret_cast<const char*>(out.data()) + sent, out.size() - sent);
    blocked_ = true;
  }
  out.clear();
}

void TlsSession::Shut() {
  if (state_ == State::kOpen || state_ == State::kEnded) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  SendOut();
}

std::string TlsSession::TakeRest() {
  std::string rest;
  rest.swap(rest_);
  return rest;
}

void TlsSession::Fail(const char* what) {
  state_ = State::kFailed;
  error_ = LastError(what);
}

}  // namespace millrace
