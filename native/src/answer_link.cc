#include "answer_link.h"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace {
namespace {

// Limit of one read. A longer request is for Node.js in any case.
constexpr size_t kMaxRead = 64 * 1024;
// Limit of streams checked in the search for a descriptor: the wanted stream is among the newest of the loop.
constexpr size_t kMaxStreams = 4096;
// Safety limit of a wait for another's answer, ms. JavaScript sets the regular limit.
constexpr uint64_t kMaxWait = 60'000;

// Links by stream, because callbacks of the loop get only the stream.
std::unordered_map<uv_stream_t*, AnswerLink*>& Links() {
  thread_local std::unordered_map<uv_stream_t*, AnswerLink*> links;
  return links;
}

AnswerLink* LinkOf(uv_stream_t* stream) {
  const auto found = Links().find(stream);
  return found == Links().end() ? nullptr : found->second;
}

uv_stream_t* FindStream(uv_loop_t* loop, int descriptor) {
  size_t looked = 0;
  for (const auto* at = loop->handle_queue.prev; at != &loop->handle_queue && looked < kMaxStreams; at = at->prev, looked += 1) {
    auto* handle = reinterpret_cast<uv_handle_t*>(const_cast<char*>(reinterpret_cast<const char*>(at)) - offsetof(uv_handle_t, handle_queue));
    uv_os_fd_t own = -1;
    if (handle->type == UV_TCP && uv_is_closing(handle) == 0 && uv_fileno(handle, &own) == 0 && own == descriptor)
      return reinterpret_cast<uv_stream_t*>(handle);
  }
  return nullptr;
}

// Status line and `Date`, renewed once a second.
std::string_view Beginning() {
  thread_local time_t second = 0;
  thread_local char text[96];
  thread_local size_t length = 0;
  const time_t now = time(nullptr);
  if (now != second || length == 0) {
    tm parts = {};
    gmtime_r(&now, &parts);
    static const char* const kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char* const kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const int made = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nDate: %s, %02d %s %d %02d:%02d:%02d GMT\r\n", kDays[parts.tm_wday], parts.tm_mday,
                              kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    length = made > 0 ? static_cast<size_t>(made) : 0;
    second = now;
  }
  return {text, length};
}

}  // namespace

// The unsent end of an answer; holds its bytes until the system has taken them.
struct AnswerLink::Rest {
  uv_write_t request = {};
  std::shared_ptr<AnswerLink> link;
  std::string bytes;
  void* map = MAP_FAILED;
  size_t map_length = 0;

  ~Rest() {
    if (map != MAP_FAILED) munmap(map, map_length);
  }
};

std::shared_ptr<AnswerLink> AnswerLink::Open(std::shared_ptr<AnswerCache> cache, uv_loop_t* loop, int descriptor) {
  uv_stream_t* stream = FindStream(loop, descriptor);
  // Without a reader nobody could take over the requests that are not answered here.
  if (stream == nullptr || stream->read_cb == nullptr || stream->alloc_cb == nullptr || LinkOf(stream) != nullptr) return nullptr;
  std::shared_ptr<AnswerLink> link(new AnswerLink(std::move(cache), stream, descriptor));
  Links()[stream] = link.get();
  return link;
}

AnswerLink::AnswerLink(std::shared_ptr<AnswerCache> cache, uv_stream_t* stream, int descriptor)
    : cache_(std::move(cache)), stream_(stream), descriptor_(descriptor), node_alloc_(stream->alloc_cb), node_read_(stream->read_cb) {}

AnswerLink::~AnswerLink() {
  // The thread ends without `Close`, and its streams with it.
  if (state_ != State::kClosed && LinkOf(stream_) == this) Links().erase(stream_);
  Unfollow();
  if (leads_ != nullptr) cache_->EndWait(*leads_);
}

void AnswerLink::Arm() {
  if (over_ || state_ == State::kClosed || state_ == State::kSending || state_ == State::kWaiting || uv_is_closing(reinterpret_cast<uv_handle_t*>(stream_)) != 0) return;
  if (stream_->read_cb != OnRead) {
    // Node.js has stopped reading, and will start again with its own callbacks.
    if (stream_->read_cb == nullptr) return;
    uv_read_stop(stream_);
    if (uv_read_start(stream_, OnAlloc, OnRead) != 0) return;
  }
  state_ = State::kArmed;
}

void AnswerLink::Disarm() {
  over_ = true;
  if (state_ == State::kArmed) state_ = State::kJavaScript;
}

void AnswerLink::Close() {
  if (state_ == State::kClosed) return;
  const bool is_open = uv_is_closing(reinterpret_cast<uv_handle_t*>(stream_)) == 0;
  if (is_open && stream_->read_cb == OnRead) {
    uv_read_stop(stream_);
    uv_read_start(stream_, node_alloc_, node_read_);
  }
  if (state_ == State::kWaiting) Leave();
  state_ = State::kClosed;
  Links().erase(stream_);
  EndLead();
  lines_.reset();
  asked_ = std::string();
}

bool AnswerLink::Asked(PlainRequest* request) const { return !asked_.empty() && ReadPlainRequest(asked_, request); }

double AnswerLink::idle() const {
  if (state_ == State::kClosed || (active_at_ == 0 && state_ != State::kWaiting)) return -1;
  return state_ == State::kSending || state_ == State::kWaiting ? 0 : static_cast<double>(uv_now(stream_->loop) - active_at_);
}

void AnswerLink::Sweep(double limit) {
  std::vector<std::shared_ptr<AnswerLink>> slow;
  std::vector<std::shared_ptr<AnswerLink>> late;
  for (const auto& [stream, link] : Links()) {
    const uint64_t now = uv_now(stream->loop);
    if (link->state_ == State::kSending && static_cast<double>(now - link->active_at_) > limit) slow.push_back(link->shared_from_this());
    if (link->state_ == State::kWaiting && now - link->waits_since_ > kMaxWait) late.push_back(link->shared_from_this());
  }
  for (const auto& link : late) link->Release();
  for (const auto& link : slow) {
    link->cache_->figures().timeouts += 1;
    link->GiveToNode(nullptr, UV_ETIMEDOUT);
  }
}

void AnswerLink::OnAlloc(uv_handle_t*, size_t, uv_buf_t* buffer) {
  // One buffer for all links of the thread: its content is answered or copied before the next read.
  thread_local char scratch[kMaxRead];
  *buffer = uv_buf_init(scratch, sizeof scratch);
}

void AnswerLink::OnRead(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  AnswerLink* found = LinkOf(stream);
  if (count == 0 || found == nullptr) return;
  const std::shared_ptr<AnswerLink> link = found->shared_from_this();
  // A client that sends more while it waits is for JavaScript to hold back; a client that has left needs no answer.
  if (link->state_ == State::kWaiting && count > 0) link->Release();
  else if (link->state_ == State::kWaiting) link->Leave();
  if (count > 0 && link->state_ == State::kArmed) {
    const std::string_view data(buffer->base, static_cast<size_t>(count));
    if (link->Answered(data) || link->Followed(data)) return;
    link->held_for_ = 0;
    if (data.size() <= AnswerCache::kMaxRequest) link->asked_.assign(data);
    else link->asked_.clear();
  } else link->asked_.clear();
  link->state_ = link->state_ == State::kArmed ? State::kJavaScript : link->state_;
  link->GiveToNode(buffer->base, count);
}

void AnswerLink::GiveToNode(const char* data, ssize_t count) {
  if (state_ == State::kClosed || uv_is_closing(reinterpret_cast<uv_handle_t*>(stream_)) != 0) return;
  uv_stream_t* stream = stream_;
  uv_buf_t buffer = uv_buf_init(nullptr, 0);
  const uv_read_cb read = node_read_;
  if (count > 0) {
    node_alloc_(reinterpret_cast<uv_handle_t*>(stream), static_cast<size_t>(count), &buffer);
    if (buffer.base == nullptr || buffer.len < static_cast<size_t>(count)) count = UV_ENOBUFS;
    else memcpy(buffer.base, data, static_cast<size_t>(count));
  }
  read(stream, count, &buffer);
}

bool AnswerLink::Answered(std::string_view data) {
  PlainRequest request;
  if (!ReadPlainRequest(data, &request)) return false;
  const std::shared_ptr<AnswerCache::Lines>* lines = cache_->Known(request.lines, lines_);
  if (lines == nullptr) return false;
  if (lines->get() != lines_.get()) lines_ = *lines;
  AnswerCache::Session* session = nullptr;
  const Answer* answer = cache_->Find(request, lines_->variant, &session);
  if (answer == nullptr || uv_stream_get_write_queue_size(stream_) > 0) return false;
  const std::string_view beginning = Beginning();
  thread_local std::string head;
  thread_local std::string body;
  head.assign(beginning).append(answer->head);
  ssize_t sent = 0;
  if (answer->file != nullptr) {
    sent = send(descriptor_, head.data(), head.size(), MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
    if (sent == static_cast<ssize_t>(head.size())) {
      off_t offset = 0;
      const ssize_t more = sendfile(descriptor_, answer->file->descriptor(), &offset, answer->length());
      if (more > 0) sent += more;
    }
  } else {
    const char* bytes = answer->body.data();
    if (!answer->places.empty()) {
      if (body.size() < answer->length()) body.resize(answer->length());
      answer->Write(request.token, body.data());
      bytes = body.data();
    }
    iovec parts[] = {{head.data(), head.size()}, {const_cast<char*>(bytes), answer->length()}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (sent < 0) {
    // Node.js will find the error itself.
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    sent = 0;
  }
  const size_t whole = head.size() + answer->length();
  active_at_ = uv_now(stream_->loop);
  if (static_cast<size_t>(sent) < whole && !SendRest(*answer, head, body.data(), static_cast<size_t>(sent))) {
    // Nothing was sent, so Node.js can still answer.
    if (sent == 0) return false;
    cache_->figures().aborts += 1;
    GiveToNode(nullptr, UV_ENOMEM);
    return true;
  }
  requests_ += 1;
  cache_->Count(*answer, session, whole);
  return true;
}

bool AnswerLink::Followed(std::string_view data) {
  if (!Follow(data)) return false;
  asked_.assign(data);
  waits_since_ = uv_now(stream_->loop);
  cache_->figures().held += 1;
  return true;
}

bool AnswerLink::Follow(std::string_view data) {
  PlainRequest request;
  if (lines_ == nullptr || uv_stream_get_write_queue_size(stream_) > 0 || !ReadPlainRequest(data, &request)) return false;
  const std::shared_ptr<AnswerCache::Lines>* lines = cache_->Known(request.lines, lines_);
  if (lines == nullptr) return false;
  follows_ = cache_->Follow(request, (*lines)->variant);
  if (follows_ == nullptr) return false;
  place_ = follows_->followers.size();
  follows_->followers.push_back(this);
  state_ = State::kWaiting;
  return true;
}

void AnswerLink::Leave() {
  cache_->figures().left += 1;
  requests_ += 1;
  Unfollow();
  state_ = State::kJavaScript;
}

void AnswerLink::Unfollow() {
  if (follows_ == nullptr) return;
  std::vector<AnswerLink*>& followers = follows_->followers;
  followers.back()->place_ = place_;
  followers[place_] = followers.back();
  followers.pop_back();
  follows_.reset();
  cache_->Unfollow();
}

bool AnswerLink::Lead(const PlainRequest& request, uint32_t variant, uint32_t feed) {
  EndLead();
  if (state_ != State::kJavaScript) return false;
  cache_->Judge(request.lines, variant);
  leads_ = cache_->BeginWait(request, variant, feed);
  return leads_ != nullptr;
}

void AnswerLink::EndLead() {
  if (leads_ == nullptr) return;
  const std::shared_ptr<AnswerWait> wait = std::move(leads_);
  leads_.reset();
  cache_->EndWait(*wait);
  Decide(wait.get());
}

void AnswerLink::Decide(AnswerWait* wait) {
  std::vector<std::shared_ptr<AnswerLink>> links = FollowersOf(wait);
  for (const auto& link : links) {
    if (!link->Resumed()) link->cache_->released().push_back(link);
  }
}

std::vector<std::shared_ptr<AnswerLink>> AnswerLink::FollowersOf(AnswerWait* wait) {
  std::vector<std::shared_ptr<AnswerLink>> links;
  links.reserve(wait->followers.size());
  for (AnswerLink* follower : wait->followers) links.push_back(follower->shared_from_this());
  wait->followers.clear();
  for (const auto& link : links) {
    link->follows_.reset();
    link->cache_->Unfollow();
  }
  return links;
}

bool AnswerLink::Resumed() {
  // Node.js reports the end of a closing stream itself.
  if (over_ || uv_is_closing(reinterpret_cast<uv_handle_t*>(stream_)) != 0) return false;
  state_ = State::kArmed;
  if (Answered(asked_)) return true;
  if (state_ == State::kArmed) state_ = State::kWaiting;
  return state_ != State::kWaiting;
}

void AnswerLink::Release() {
  if (state_ != State::kWaiting) return;
  Unfollow();
  state_ = State::kJavaScript;
  held_for_ = static_cast<double>(uv_now(stream_->loop) - waits_since_);
  GiveToNode(asked_.data(), static_cast<ssize_t>(asked_.size()));
}

void AnswerLink::ReleaseAll(AnswerCache* cache) {
  // Requests released meanwhile are for the next call.
  const std::vector<std::weak_ptr<AnswerLink>> released = std::exchange(cache->released(), {});
  std::vector<std::shared_ptr<AnswerLink>> links;
  for (const auto& one : released) {
    if (auto link = one.lock()) links.push_back(std::move(link));
  }
  // The oldest request goes to JavaScript first, and the others may wait for its answer. So none waits longer than JavaScript allows.
  std::stable_sort(links.begin(), links.end(), [](const auto& one, const auto& other) { return one->waits_since_ < other->waits_since_; });
  for (const auto& link : links) {
    // The link may have left meanwhile, or joined another wait.
    if (link->state_ != State::kWaiting || link->follows_ != nullptr) continue;
    if (link->Resumed() || link->state_ != State::kWaiting || (!link->over_ && link->Follow(link->asked_))) continue;
    link->Release();
  }
}

void AnswerLink::ReleaseFeed(AnswerCache* cache, uint32_t feed) {
  std::vector<std::shared_ptr<AnswerLink>> links;
  for (const auto& wait : cache->WaitsOf(feed)) {
    for (auto& link : FollowersOf(wait.get())) links.push_back(std::move(link));
  }
  for (const auto& link : links) {
    if (link->follows_ == nullptr) link->Release();
  }
}

bool AnswerLink::SendRest(const Answer& answer, std::string_view head, const char* body, size_t sent) {
  auto rest = std::make_unique<Rest>();
  rest->link = shared_from_this();
  uv_buf_t buffers[2];
  unsigned int count = 0;
  if (sent < head.size()) rest->bytes.assign(head.substr(sent));
  const size_t skip = sent < head.size() ? 0 : sent - head.size();
  if (answer.file == nullptr) rest->bytes.append((answer.places.empty() ? answer.body.data() : body) + skip, answer.length() - skip);
  if (!rest->bytes.empty()) buffers[count++] = uv_buf_init(rest->bytes.data(), static_cast<unsigned int>(rest->bytes.size()));
  if (answer.file != nullptr && skip < answer.length()) {
    rest->map_length = answer.length();
    rest->map = mmap(nullptr, rest->map_length, PROT_READ, MAP_SHARED, answer.file->descriptor(), 0);
    if (rest->map == MAP_FAILED) return false;
    buffers[count++] = uv_buf_init(static_cast<char*>(rest->map) + skip, static_cast<unsigned int>(answer.length() - skip));
  }
  rest->request.data = rest.get();
  if (uv_write(&rest->request, stream_, buffers, count, OnWritten) != 0) return false;
  rest.release();
  // The client's next request has to wait.
  uv_read_stop(stream_);
  state_ = State::kSending;
  return true;
}

void AnswerLink::OnWritten(uv_write_t* request, int status) {
  const std::unique_ptr<Rest> rest(static_cast<Rest*>(request->data));
  AnswerLink& link = *rest->link;
  if (status != 0) link.cache_->figures().aborts += 1;
  // Node.js has closed the stream meanwhile.
  if (link.state_ != State::kSending || uv_is_closing(reinterpret_cast<uv_handle_t*>(link.stream_)) != 0) return;
  link.state_ = State::kJavaScript;
  link.active_at_ = uv_now(link.stream_->loop);
  if (status == 0) status = uv_read_start(link.stream_, OnAlloc, OnRead);
  if (status != 0) {
    link.GiveToNode(nullptr, status);
    return;
  }
  if (!link.over_) link.state_ = State::kArmed;
}

}  // namespace millrace
