/* The yardstick: plain C loops over the units of a commit log (spec 2.1), as tight as they come without hand-placed prefetches.
 *
 *   cc -O3 -march=native -shared -fPIC -o libyardstick.so scan.c
 *
 * It trusts every length it reads and knows nothing of bad bytes: it says how fast the machine is, not how to read a store.
 * On x86_64 the body CRC is folded with PCLMULQDQ, eight accumulators wide, as isa-l does; elsewhere slicing by 16.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>

#define MAGIC_V1 0xDAA320A7u
#define MAGIC_V2 0xDAA320ABu

static inline uint16_t be16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
static inline uint32_t be32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline uint64_t be64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }

static uint32_t T[16][256];

__attribute__((constructor)) static void make_tables(void) {
    for (int i = 0; i < 256; i++) {
        uint32_t c = (uint32_t)i;
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
        T[0][i] = c;
    }
    for (int j = 1; j < 16; j++)
        for (int i = 0; i < 256; i++) T[j][i] = (T[j - 1][i] >> 8) ^ T[0][T[j - 1][i] & 255];
}

static uint32_t crc_table(uint32_t c, const uint8_t *p, int64_t n) {
    for (; n >= 16; p += 16, n -= 16) {
        uint64_t v, w;
        memcpy(&v, p, 8); memcpy(&w, p + 8, 8);
        v ^= c;
        c = 0;
        for (int i = 0; i < 8; i++) c ^= T[15 - i][v >> (8 * i) & 255] ^ T[7 - i][w >> (8 * i) & 255];
    }
    while (n--) c = (c >> 8) ^ T[0][(c ^ *p++) & 255];
    return c;
}

#if defined(__x86_64__) && defined(__PCLMUL__) && defined(__SSE4_1__)
#include <immintrin.h>

static const uint8_t SHIFT[48] = {
    128,128,128,128,128,128,128,128,128,128,128,128,128,128,128,128, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,
    128,128,128,128,128,128,128,128,128,128,128,128,128,128,128,128};
static const uint8_t KEEP[32] = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,
    255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255};

static inline __m128i load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline __m128i fold(__m128i x, __m128i k, __m128i d) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), d);
}

static uint32_t crc32_of(const uint8_t *p, int64_t n) {
    if (n < 16) return ~crc_table(0xFFFFFFFFu, p, n);
    const uint8_t *e = p + n;
    const __m128i k12 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), k34 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i k78 = _mm_set_epi64x(0x014a7fe880, 0x01e88ef372);
    const __m128i k50 = _mm_set_epi64x(0, 0x0163cd6124), pmu = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low = _mm_set_epi32(0, -1, 0, -1);
    __m128i x = _mm_xor_si128(load(p), _mm_cvtsi32_si128(-1));
    if (n >= 64) {
        __m128i y = load(p + 16), z = load(p + 32), w = load(p + 48);
        p += 64;
        if (e - p >= 64) {
            __m128i a = load(p), b = load(p + 16), c = load(p + 32), d = load(p + 48);
            for (p += 64; e - p >= 128; p += 128) {
                x = fold(x, k78, load(p)); y = fold(y, k78, load(p + 16));
                z = fold(z, k78, load(p + 32)); w = fold(w, k78, load(p + 48));
                a = fold(a, k78, load(p + 64)); b = fold(b, k78, load(p + 80));
                c = fold(c, k78, load(p + 96)); d = fold(d, k78, load(p + 112));
            }
            x = fold(x, k12, a); y = fold(y, k12, b); z = fold(z, k12, c); w = fold(w, k12, d);
        }
        if (e - p >= 64) {
            x = fold(x, k12, load(p)); y = fold(y, k12, load(p + 16));
            z = fold(z, k12, load(p + 32)); w = fold(w, k12, load(p + 48));
            p += 64;
        }
        x = fold(fold(fold(x, k34, y), k34, z), k34, w);
    } else p += 16;
    for (; e - p >= 16; p += 16) x = fold(x, k34, load(p));
    int64_t r = e - p;
    if (r) {
        __m128i first = _mm_shuffle_epi8(x, load(SHIFT + r));
        __m128i rest = _mm_or_si128(_mm_shuffle_epi8(x, load(SHIFT + 16 + r)), _mm_and_si128(load(e - 16), load(KEEP + r)));
        x = fold(first, k34, rest);
    }
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, k34, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low), k50, 0x00));
    __m128i t = _mm_clmulepi64_si128(_mm_and_si128(x, low), pmu, 0x10);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, low), pmu, 0x00);
    return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}
#else
static uint32_t crc32_of(const uint8_t *p, int64_t n) { return ~crc_table(0xFFFFFFFFu, p, n); }
#endif

uint32_t yard_crc(const uint8_t *p, int64_t n) { return crc32_of(p, n); }

typedef struct {
    int64_t *offset; int32_t *size; uint8_t *version; int32_t *queue_id; int64_t *queue_offset; int32_t *flag, *sys_flag;
    int64_t *born_timestamp, *store_timestamp; int32_t *reconsume_times; int64_t *prepared_transaction_offset;
    int32_t *body_crc; uint8_t *crc; int32_t *body_length; int64_t *tags_code, *physical_offset; uint8_t *kind;
    int32_t *topic_id; int64_t *body_position, *properties_position; int32_t *properties_length;
} columns;

typedef struct { int count; int32_t length[64]; uint8_t name[64][128]; } topics;

static inline int topic_of(topics *t, const uint8_t *p, int n) {
    for (int i = 0; i < t->count; i++)
        if (t->length[i] == n && !memcmp(t->name[i], p, (size_t)n)) return i;
    memcpy(t->name[t->count], p, (size_t)n);
    t->length[t->count] = n;
    return t->count++;
}

static inline int64_t tags_code_of(const uint8_t *q, const uint8_t *e) {
    int64_t code = 0;
    while (q < e) {
        const uint8_t *start = q;
        while (q < e && *q != 2) q++;
        if (q - start > 5 && !memcmp(start, "TAGS\1", 5)) {
            uint32_t h = 0;
            for (const uint8_t *s = start + 5; s < q; s++) h = h * 31 + *s;
            code = (int32_t)h;
        }
        q++;
    }
    return code;
}

/* Every column and the CRC of units from position at on, at most capacity rows; gives the position behind the last one. */
int64_t yard_full(const uint8_t *buf, int64_t n, int64_t at, int64_t base, columns *o, int64_t capacity, topics *t, int64_t *rows) {
    int64_t k = 0;
    while (at + 8 <= n && k < capacity) {
        const uint8_t *m = buf + at;
        int64_t total = (int32_t)be32(m);
        uint32_t magic = be32(m + 4);
        if ((magic != MAGIC_V1 && magic != MAGIC_V2) || at + total > n) break;
        uint32_t flags = be32(m + 36);
        const uint8_t *s = m + 48 + (flags & 16 ? 20 : 8), *r = s + 8 + (flags & 32 ? 20 : 8);
        o->offset[k] = base + at; o->size[k] = (int32_t)total; o->version[k] = magic == MAGIC_V1 ? 1 : 2; o->kind[k] = 0;
        o->queue_id[k] = (int32_t)be32(m + 12); o->flag[k] = (int32_t)be32(m + 16);
        o->queue_offset[k] = (int64_t)be64(m + 20); o->physical_offset[k] = (int64_t)be64(m + 28);
        o->sys_flag[k] = (int32_t)flags; o->born_timestamp[k] = (int64_t)be64(m + 40);
        o->store_timestamp[k] = (int64_t)be64(s); o->reconsume_times[k] = (int32_t)be32(r);
        o->prepared_transaction_offset[k] = (int64_t)be64(r + 4);
        int32_t body = (int32_t)be32(r + 12);
        const uint8_t *q = r + 16;
        uint32_t stored = be32(m + 8);
        o->body_crc[k] = (int32_t)stored; o->body_length[k] = body; o->body_position[k] = q - buf;
        o->crc[k] = (crc32_of(q, body) & 0x7FFFFFFF) == stored ? 1 : 2;
        q += body;
        int length = magic == MAGIC_V1 ? *q : be16(q);
        q += magic == MAGIC_V1 ? 1 : 2;
        o->topic_id[k] = topic_of(t, q, length);
        q += length;
        int properties = be16(q);
        q += 2;
        o->properties_position[k] = q - buf; o->properties_length[k] = properties;
        o->tags_code[k] = tags_code_of(q, q + properties);
        k++;
        at += total;
    }
    *rows = k;
    return at;
}

/* The fixed fields that a side index needs, nothing behind the body. */
int64_t yard_header(const uint8_t *buf, int64_t n, int64_t at, int64_t base, columns *o, int64_t capacity, int64_t *rows) {
    int64_t k = 0;
    while (at + 8 <= n && k < capacity) {
        const uint8_t *m = buf + at;
        int64_t total = (int32_t)be32(m);
        uint32_t magic = be32(m + 4);
        if ((magic != MAGIC_V1 && magic != MAGIC_V2) || at + total > n) break;
        uint32_t flags = be32(m + 36);
        o->offset[k] = base + at; o->size[k] = (int32_t)total; o->queue_id[k] = (int32_t)be32(m + 12);
        o->queue_offset[k] = (int64_t)be64(m + 20); o->sys_flag[k] = (int32_t)flags;
        o->store_timestamp[k] = (int64_t)be64(m + 48 + (flags & 16 ? 20 : 8));
        k++;
        at += total;
    }
    *rows = k;
    return at;
}

/* The memory floor: every byte once. */
uint64_t yard_sum(const uint8_t *buf, int64_t n) {
    uint64_t sum = 0, v;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) { memcpy(&v, buf + i, 8); sum += v; }
    for (; i < n; i++) sum += buf[i];
    return sum;
}

/* Maps a file with all its pages present, so that no page fault falls into a measurement; 0 where that fails. */
uint8_t *yard_map(const char *path, int64_t *size) {
    int f = open(path, O_RDONLY | O_CLOEXEC);
    if (f < 0) return 0;
    *size = lseek(f, 0, SEEK_END);
    void *p = mmap(0, (size_t)*size, PROT_READ, MAP_SHARED | MAP_POPULATE, f, 0);
    close(f);
    return p == MAP_FAILED ? 0 : p;
}

/* Walk a whole mapped file block by block into the same small columns again and again; gives the number of units. */
int64_t yard_walk(const uint8_t *buf, int64_t n, columns *o, int64_t capacity, topics *t, int full) {
    int64_t at = 0, all = 0, rows = 1;
    while (rows) {
        at = full ? yard_full(buf, n, at, 0, o, capacity, t, &rows) : yard_header(buf, n, at, 0, o, capacity, &rows);
        all += rows;
    }
    return all;
}

/* The same walk over a file that is read piece by piece into one buffer, as our own reader does. */
int64_t yard_read_walk(const char *path, uint8_t *buf, int64_t room, columns *o, int64_t capacity, topics *t, int full) {
    int f = open(path, O_RDONLY | O_CLOEXEC);
    int64_t all = 0, have = 0, position = 0, base = 0;
    if (f < 0) return -1;
    for (;;) {
        int64_t got = pread(f, buf + have, (size_t)(room - have), position);
        if (got <= 0) break;
        position += got;
        have += got;
        int64_t at = 0, rows = 1, before = all;
        while (rows) {
            at = full ? yard_full(buf, have, at, base, o, capacity, t, &rows)
                      : yard_header(buf, have, at, base, o, capacity, &rows);
            all += rows;
        }
        if (all == before) break;
        memmove(buf, buf + at, (size_t)(have - at));
        have -= at;
        base += at;
    }
    close(f);
    return all;
}
