// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"

namespace incipit::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r\n";

// The number at the front of `text`; none for "max", "-1" and everything else.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool complete =
      end == text.data() + text.size() || kSpace.find(*end) != std::string_view::npos;
  return error == std::errc() && complete ? std::optional(value) : std::nullopt;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  for (std::size_t begin = 0; begin <= controllers.size();) {
    const std::size_t end = std::min(controllers.find(',', begin), controllers.size());
    if (controllers.substr(begin, end - begin) == wanted) return true;
    begin = end + 1;
  }
  return false;
}

// `root` / `group` and all directories above it up to `root`. A container may see the host's name
// of its group, which does not exist below its own root; levels that are missing set no limit.
void append_levels(std::vector<fs::path>& out, const fs::path& root, std::string_view group) {
  for (fs::path level = fs::path(group).relative_path(); !level.empty();
       level = level.parent_path()) {
    out.push_back(root / level);
  }
  out.push_back(root);
}

// Every directory that may limit this process by `controller`.
std::vector<fs::path> control_groups(const fs::path& proc, const fs::path& cgroup,
                                     std::string_view controller) {
  std::vector<fs::path> out;
  std::ifstream in(proc / "self" / "cgroup");
  for (std::string line; std::getline(in, line);) {  // hierarchy:controllers:group
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const auto group = std::string_view(line).substr(second + 1);
    if (group.find("..") != std::string_view::npos) continue;  // outside of what is visible here
    if (controllers.empty()) {  // version 2, alone or next to version 1
      append_levels(out, cgroup, group);
      append_levels(out, cgroup / "unified", group);
    } else if (lists(controllers, controller)) {
      append_levels(out, cgroup / controller, group);
      if (controllers != controller) append_levels(out, cgroup / controllers, group);
    }
  }
  out.push_back(cgroup);
  out.push_back(cgroup / controller);
  return out;
}

unsigned cpus_of(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
  constexpr unsigned kNoLimit = std::numeric_limits<unsigned>::max();
  if (!quota || !period || *period == 0) return kNoLimit;
  const std::uint64_t cpus = *quota / *period + (*quota % *period != 0 ? 1 : 0);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(cpus, 1, kNoLimit));
}

unsigned affinity() {
  for (std::size_t cpus = CPU_SETSIZE; cpus <= 1u << 20; cpus *= 2) {
    std::vector<cpu_set_t> set(cpus / CPU_SETSIZE);
    const std::size_t bytes = set.size() * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, set.data()) == 0) {
      return static_cast<unsigned>(std::max(1, CPU_COUNT_S(bytes, set.data())));
    }
  }
  return 1;
}

}  // namespace

unsigned cgroup_cpu_quota(const fs::path& proc, const fs::path& cgroup) {
  unsigned least = std::numeric_limits<unsigned>::max();
  for (const fs::path& group : control_groups(proc, cgroup, "cpu")) {
    const std::string max = first_line(group / "cpu.max");  // "quota period"
    const auto period = std::string_view(max).substr(std::min(max.find(' '), max.size()));
    const auto trimmed = period.substr(std::min(period.find_first_not_of(kSpace), period.size()));
    least = std::min(least, cpus_of(parse_number(max), parse_number(trimmed)));
    least = std::min(least, cpus_of(parse_number(first_line(group / "cpu.cfs_quota_us")),
                                    parse_number(first_line(group / "cpu.cfs_period_us"))));
  }
  return least;
}

std::uint64_t cgroup_memory_limit(const fs::path& proc, const fs::path& cgroup) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const fs::path& group : control_groups(proc, cgroup, "memory")) {
    for (const char* file : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
      least = std::min(least, parse_number(first_line(group / file)).value_or(least));
    }
  }
  return least;
}

unsigned available_cpus() {
  return std::min(affinity(), cgroup_cpu_quota("/proc", "/sys/fs/cgroup"));
}

std::uint64_t available_memory() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGE_SIZE)));
  return std::min(pages * page_bytes, cgroup_memory_limit("/proc", "/sys/fs/cgroup"));
}

}  // namespace incipit::base
