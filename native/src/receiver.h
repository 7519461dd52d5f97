// The thread that reads the UDP ports: sorts datagrams (RFC 7983), decrypts packets of viewers, and serves their NACKs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "event.h"
#include "shard.h"

namespace millrace {

struct ReceiverCounters {
  std::atomic<uint64_t> datagrams{0};
  // Datagrams from unknown addresses, or of an unknown protocol.
  std::atomic<uint64_t> strangers{0};
  std::atomic<uint64_t> nacks{0};
  // Packets over TCP dropped for lack of room.
  std::atomic<uint64_t> dropped_injected{0};
};

class Receiver {
 public:
  explicit Receiver(EventQueue* events);
  ~Receiver();

  // Reads `socket` from now on; events of its datagrams have this `id`.
  void AddSocket(uint32_t id, int socket);
  void AddViewer(uint32_t id, Shard* shard, std::shared_ptr<ViewerCounters> counters, std::unique_ptr<SrtpReceiver> keys);
  void RemoveViewer(uint32_t id);
  // Datagrams from this address to this socket belong to the viewer, in addition to its earlier addresses.
  void Hear(uint32_t viewer, uint32_t socket_id, const Address& address);
  // A packet that came over TCP. Dropped and counted when too many bytes of the viewer are waiting.
  void Inject(uint32_t viewer, std::shared_ptr<ViewerCounters> counters, std::string packet);

  const ReceiverCounters& counters() const { return counters_; }

 private:
  struct Peer {
    Shard* shard;
    std::shared_ptr<ViewerCounters> counters;
    std::unique_ptr<SrtpReceiver> keys;
    // Oldest first.
    std::vector<std::string> places;
  };
  struct Socket {
    uint32_t id;
    int descriptor;
  };
  using Command = std::function<void()>;
  void Post(Command command);
  void Run();
  void Read(const Socket& socket);
  void Sort(const Socket& socket, const Address& from, uint8_t* data, size_t length);
  void Protected(uint32_t viewer, Peer* peer, uint8_t* data, size_t length);
  void Forget(uint32_t viewer, const std::string& place);
  // Serves generic NACKs; true when the packet contains anything else.
  bool ServeFeedback(uint32_t viewer, Peer* peer, const uint8_t* data, size_t length);

  EventQueue* const events_;
  ReceiverCounters counters_;
  std::vector<Socket> sockets_;
  std::unordered_map<uint32_t, Peer> peers_;
  // Viewers by socket and address.
  std::unordered_map<std::string, uint32_t> places_;
  std::vector<uint8_t> buffers_;
  // Arrival time of the packet that is being read, ms of the steady clock.
  double arrived_ = 0;
  int wake_;
  std::mutex mutex_;
  std::vector<Command> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace millrace
