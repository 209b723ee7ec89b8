/* The yardstick of writing: a plain C loop that encodes units of the commit log (spec 2.1) from columns.
 *
 *   cc -O3 -march=native -shared -fPIC -o libappend.so append.c
 *
 * One topic, IPv4 hosts, version 1; it proves nothing. The body CRC is that of scan.c.
 */
#include "scan.c"

static inline void put16(uint8_t *p, uint16_t v) { v = __builtin_bswap16(v); memcpy(p, &v, 2); }
static inline void put32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static inline void put64(uint8_t *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

typedef struct {
    const uint8_t *bodies, *properties, *topic;
    const int32_t *body_length, *properties_length, *queue_id;
    const int64_t *born_timestamp;
    int64_t topic_length, now, rows, *queue_offsets, *out_offset, *out_queue_offset, *out_size;
} columns_to_write;

static const uint8_t HOST[8] = {127, 0, 0, 1, 0, 0, 0x2a, 0x9f};

/* All rows into out, whose first byte has the offset base; gives the position behind the last unit. */
int64_t yard_append(uint8_t *out, int64_t base, const columns_to_write *w) {
    const uint8_t *body = w->bodies, *text = w->properties;
    int64_t at = 0;
    for (int64_t i = 0; i < w->rows; i++) {
        int32_t size = w->body_length[i], length = w->properties_length[i], queue = w->queue_id[i];
        int32_t total = 91 + size + length + (int32_t)w->topic_length;
        uint8_t *p = out + at;
        int64_t queue_offset = w->queue_offsets[queue]++;
        put32(p, (uint32_t)total); put32(p + 4, MAGIC_V1); put32(p + 8, crc32_of(body, size) & 0x7FFFFFFF);
        put32(p + 12, (uint32_t)queue); put32(p + 16, 0); put64(p + 20, (uint64_t)queue_offset);
        put64(p + 28, (uint64_t)(base + at)); put32(p + 36, 0); put64(p + 40, (uint64_t)w->born_timestamp[i]);
        memcpy(p + 48, HOST, 8); put64(p + 56, (uint64_t)w->now); memcpy(p + 64, HOST, 8);
        put32(p + 72, 0); put64(p + 76, 0); put32(p + 84, (uint32_t)size);
        memcpy(p + 88, body, (size_t)size);
        p += 88 + size;
        *p++ = (uint8_t)w->topic_length;
        memcpy(p, w->topic, (size_t)w->topic_length);
        p += w->topic_length;
        put16(p, (uint16_t)length);
        memcpy(p + 2, text, (size_t)length);
        w->out_offset[i] = base + at; w->out_queue_offset[i] = queue_offset; w->out_size[i] = total;
        at += total;
        body += size;
        text += length;
    }
    return at;
}
