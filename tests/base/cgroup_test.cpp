// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <limits>
#include <thread>

#include "base/machine.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::base {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kNoQuota = std::numeric_limits<unsigned>::max();
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// A made-up procfs and cgroup file system.
class Machine {
 public:
  explicit Machine(const std::string& groups) { write("proc/self/cgroup", groups); }

  Machine& write(const fs::path& name, const std::string& text) {
    const fs::path path = directory_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return *this;
  }
  unsigned cpus() const { return cgroup_cpu_quota(root("proc"), root("cgroup")); }
  std::uint64_t memory() const { return cgroup_memory_limit(root("proc"), root("cgroup")); }

 private:
  fs::path root(const char* name) const { return directory_.path() / name; }

  test::TemporaryDirectory directory_;
};

TEST_CASE("no control groups, no limits") {
  CHECK(cgroup_cpu_quota("/nonexistent", "/nonexistent") == kNoQuota);
  CHECK(cgroup_memory_limit("/nonexistent", "/nonexistent") == kNoLimit);
  Machine machine("0::/a\n");
  machine.write("cgroup/a/cpu.max", "max 100000\n").write("cgroup/a/memory.max", "max\n");
  CHECK(machine.cpus() == kNoQuota);
  CHECK(machine.memory() == kNoLimit);
}

TEST_CASE("a quota counts CPUs, rounded up and at least one") {
  const auto cpus = [](const char* text) {
    return Machine("0::/a\n").write("cgroup/a/cpu.max", text).cpus();
  };
  CHECK(cpus("200000 100000\n") == 2);
  CHECK(cpus("200001 100000\n") == 3);
  CHECK(cpus("150000 100000") == 2);
  CHECK(cpus("1000 100000\n") == 1);
  CHECK(cpus("0 100000\n") == 1);
  CHECK(cpus("18446744073709551615 1\n") == kNoQuota);
  for (const char* damaged : {"", "\n", "5", "5 ", "5 0", "5 x", "x 5", "-1 100000", "5x 5"}) {
    CAPTURE(damaged);
    CHECK(cpus(damaged) == kNoQuota);
  }
}

TEST_CASE("version 2: the most restrictive level counts") {
  Machine machine("0::/a/b/c\n");
  machine.write("cgroup/a/b/c/cpu.max", "800000 100000\n")
      .write("cgroup/a/b/cpu.max", "300000 100000\n")
      .write("cgroup/a/cpu.max", "400000 100000\n")
      .write("cgroup/other/cpu.max", "100000 100000\n")
      .write("cgroup/a/b/c/memory.max", "max\n")
      .write("cgroup/a/memory.max", "4096\n")
      .write("cgroup/a/b/memory.high", "8192\n");
  CHECK(machine.cpus() == 3);
  CHECK(machine.memory() == 4096);
  machine.write("cgroup/cpu.max", "100000 100000\n").write("cgroup/a/b/memory.high", "1024\n");
  CHECK(machine.cpus() == 1);
  CHECK(machine.memory() == 1024);
}

TEST_CASE("version 1: each controller has its own tree") {
  Machine machine("4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/c/d\n1:name=systemd:/x\n");
  machine.write("cgroup/cpu/c/cpu.cfs_quota_us", "150000\n")
      .write("cgroup/cpu/c/cpu.cfs_period_us", "50000\n")
      .write("cgroup/cpu/c/d/cpu.cfs_quota_us", "-1\n")
      .write("cgroup/cpu/c/d/cpu.cfs_period_us", "100000\n")
      .write("cgroup/cpuset/s/cpu.cfs_quota_us", "1\n")
      .write("cgroup/cpuset/s/cpu.cfs_period_us", "1\n")
      .write("cgroup/memory/m/memory.limit_in_bytes", "1000\n")
      .write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(machine.cpus() == 3);
  CHECK(machine.memory() == 1000);
}

TEST_CASE("version 1: joint controllers under their joint name") {
  Machine machine("2:cpu,cpuacct:/c\n");
  machine.write("cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "100000\n")
      .write("cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "50000\n");
  CHECK(machine.cpus() == 2);
}

TEST_CASE("a container that sees the host's name of its group uses its own root") {
  Machine machine("0::/docker/1234\n4:memory:/docker/1234\n");
  machine.write("cgroup/cpu.max", "250000 100000\n")
      .write("cgroup/memory/memory.limit_in_bytes", "5000\n");
  CHECK(machine.cpus() == 3);
  CHECK(machine.memory() == 5000);
}

TEST_CASE("a group outside of what is visible is not looked for") {
  Machine machine("0::/../../outside\ngarbage\n:\n");
  machine.write("outside/cpu.max", "100000 100000\n").write("cgroup/cpu.max", "500000 100000\n");
  CHECK(machine.cpus() == 5);
}

TEST_CASE("this machine has a CPU and memory") {
  CHECK(available_cpus() >= 1);
  CHECK(available_cpus() <= std::max(1u, std::thread::hardware_concurrency()));
  CHECK(available_memory() >= (1u << 24));
  CHECK(available_memory() < kNoLimit);
}

}  // namespace
}  // namespace incipit::base
