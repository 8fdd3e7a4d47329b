// The bf16 matrix kernel for AMX: tiles of 16 rows by 64 bytes, 2 x 2 tiles of C at a time, so that
// four tile loads feed four tile products. Tiles 0-3 hold C, 4-5 rows of A, 6-7 one panel of B.
// The tile configuration is loaded on entry and released on exit: no state outlives the call, and
// the operating system saves no tiles in between. Subnormals count as zero.
#include <immintrin.h>

#include "cpu/gemm.h"
#include "cpu/gemm_kernels.h"

namespace dsattn::cpu {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

// In memory for good: compilers may treat a local configuration as partly unread.
constexpr TileConfig kTileConfig = {
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

constexpr int64_t kTile = 16;                    // rows of a tile, and floats in a row of C
constexpr int64_t kPanelStep = kDepth * kPanel;  // elements of B per step along K
constexpr int64_t kPanelRow = 2 * kPanel;        // elements of B per pair row

// 32 rows of C.
void multiply_32(int64_t k, const bf16* a, int64_t lda, const bf16* b, float* c, int64_t ldc,
                 bool accumulate) {
  const int64_t c_bytes = ldc * static_cast<int64_t>(sizeof(float));
  const int64_t a_bytes = lda * static_cast<int64_t>(sizeof(bf16));
  constexpr int64_t kBBytes = kPanelRow * static_cast<int64_t>(sizeof(bf16));
  float* c_low = c + kTile * ldc;
  if (accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + kTile, c_bytes);
    _tile_loadd(2, c_low, c_bytes);
    _tile_loadd(3, c_low + kTile, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < k; i += kDepth, a += kDepth, b += kPanelStep) {
    _tile_loadd(6, b, kBBytes);
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(7, b + kPanel, kBBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTile * lda, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + kTile, c_bytes);
  _tile_stored(2, c_low, c_bytes);
  _tile_stored(3, c_low + kTile, c_bytes);
}

// 16 rows of C.
void multiply_16(int64_t k, const bf16* a, int64_t lda, const bf16* b, float* c, int64_t ldc,
                 bool accumulate) {
  const int64_t c_bytes = ldc * static_cast<int64_t>(sizeof(float));
  const int64_t a_bytes = lda * static_cast<int64_t>(sizeof(bf16));
  constexpr int64_t kBBytes = kPanelRow * static_cast<int64_t>(sizeof(bf16));
  if (accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + kTile, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int64_t i = 0; i < k; i += kDepth, a += kDepth, b += kPanelStep) {
    _tile_loadd(6, b, kBBytes);
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(7, b + kPanel, kBBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + kTile, c_bytes);
}

}  // namespace

void gemm_bf16_amx(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t lda, const bf16* b,
                   float* c, int64_t ldc, bool accumulate) {
  _tile_loadconfig(&kTileConfig);
  for (int64_t column = 0; column < n; column += kPanel) {
    const bf16* panel = b + column * k;
    int64_t row = 0;
    for (; row + 2 * kTile <= m; row += 2 * kTile) {
      multiply_32(k, a + row * lda, lda, panel, c + row * ldc + column, ldc, accumulate);
    }
    if (row < m) {
      multiply_16(k, a + row * lda, lda, panel, c + row * ldc + column, ldc, accumulate);
    }
  }
  _tile_release();
}

}  // namespace dsattn::cpu
