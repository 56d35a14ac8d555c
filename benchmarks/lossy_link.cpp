// A cable between two network namespaces that delays packets and loses some, for kernels without netem.
//
//   lossy_link DEVICE_A DEVICE_B DELAY_MS LOSS_PERCENT SEED
//
// It makes two TUN devices, prints "ready", and then carries each packet from one to the other, DELAY_MS later, but for
// those that are lost. The caller moves the devices into their namespaces; they stay ours to read and write. It ends when
// its standard input does.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

using Clock = std::chrono::steady_clock;

struct Packet {
  Clock::time_point due;
  std::vector<char> bytes;
};

int open_device(const char* name) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0) {
    std::perror(name);
    std::exit(1);
  }
  return device;
}

int main(int count, char** words) {
  if (count != 6) return 2;
  const int devices[2] = {open_device(words[1]), open_device(words[2])};
  const auto delay = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(std::atof(words[3])));
  std::bernoulli_distribution lost(std::atof(words[4]) / 100);
  std::mt19937 random(unsigned(std::atoi(words[5])));
  std::deque<Packet> on_the_way[2];  // to each device
  std::puts("ready");
  std::fflush(stdout);
  char buffer[1 << 16];
  while (true) {
    timespec wait{1, 0};
    const auto now = Clock::now();
    for (const auto& queue : on_the_way) {
      if (queue.empty()) continue;
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(queue.front().due - now).count();
      const long nanoseconds = left < 0 ? 0 : long(left);
      if (wait.tv_sec != 0 || nanoseconds < wait.tv_nsec) wait = {0, nanoseconds < 1000000000 ? nanoseconds : 999999999};
    }
    pollfd watched[3] = {{devices[0], POLLIN, 0}, {devices[1], POLLIN, 0}, {0, POLLIN, 0}};
    ppoll(watched, 3, &wait, nullptr);
    if (watched[2].revents != 0) return 0;
    for (int from = 0; from < 2; ++from) {
      ssize_t size;
      while ((size = read(devices[from], buffer, sizeof buffer)) > 0)
        if (!lost(random)) on_the_way[1 - from].push_back({Clock::now() + delay, {buffer, buffer + size}});
    }
    for (int to = 0; to < 2; ++to) {
      auto& queue = on_the_way[to];
      for (; !queue.empty() && queue.front().due <= Clock::now(); queue.pop_front()) {
        const Packet& packet = queue.front();
        if (write(devices[to], packet.bytes.data(), packet.bytes.size()) < 0) continue;  // a device that is full or down loses it
      }
    }
  }
}
