#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of machine code counts what a kernel is known to hold.

Usage: sass_test.py NVCC
"""

import pathlib
import subprocess
import sys
import tempfile

import sass

KERNEL = r"""
#include <cuda.h>

__global__ void counted(float* out, const uint4* in, unsigned* flags) {
  __shared__ __align__(128) unsigned char tile[4096];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 512), "l"(in + 64));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  unsigned a[4];
  float d[4] = {};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at + i * 64));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%4,%5}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  }
  *reinterpret_cast<float4*>(out + 4 * threadIdx.x) = make_float4(d[0], d[1], d[2], d[3]);
  flags[threadIdx.x] = a[0];
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void grouped(float* out, const __grid_constant__ CUtensorMap map, unsigned long long b) {
  unsigned a[4] = {threadIdx.x, 2, 3, 4};
  float d[4] = {};
  const unsigned at = static_cast<unsigned>(b);
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %2, %2}], [%3];" ::"r"(at), "l"(&map), "r"(at), "r"(at + 4096));
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, p, 1, 1, 0,"
               " 0;}" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(b));
  asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8,"
               " p, 1, 1, 1;}" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) out[threadIdx.x + 128 * i] = d[i];
}
#endif

__global__ void spilled(int* out, const int* in, int n) {
  int local[256];
  for (int i = 0; i < n; ++i) local[in[i] & 255] = i;
  for (int i = 0; i < n; ++i) out[i] = local[in[n + i] & 255];
}
"""

WANTED = {"HMMA": 3, "LDSM": 3, "LDGSTS": 2, "LDGSTS.128": 2, "STG": 2, "STG.128": 1, "STG.32": 1,
          "BAR": 1}


def main(nvcc: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "counted.cu"
        source.write_text(KERNEL)
        for architecture in ("80", "90a"):
            cubin = source.with_suffix(".cubin")
            subprocess.run([nvcc, "-arch=sm_" + architecture, "-cubin", source, "-o", cubin],
                           check=True)
            kernels = sass.kernels(cubin)
            counted = next(counts for name, counts in kernels.items() if "counted" in name)
            spilled = next(counts for name, counts in kernels.items() if "spilled" in name)
            for name, number in WANTED.items():
                assert counted[name] == number, (architecture, name, dict(counted))
            assert counted["LDL"] == counted["STL"] == 0, (architecture, dict(counted))
            if architecture == "90a":
                grouped = next(counts for name, counts in kernels.items() if "grouped" in name)
                assert grouped["HGMMA"] == 2 and grouped["UTMALDG"] == 1, dict(grouped)
            assert spilled["STL"] > 0 and spilled["LDL"] > 0, (architecture, dict(spilled))
    try:
        list(sass.sections(b"text, no ELF file"))
    except ValueError:
        return
    sys.exit("a text was taken for a cubin")


if __name__ == "__main__":
    main(sys.argv[1])
