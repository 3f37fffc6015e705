/* SPDX-License-Identifier: MIT
 * Text in a picture: ocr det.onnx rec.onnx PICTURE.png [BOXES.png] prints a line for each piece of text, "x y width
 * height text", and draws the boxes into a copy of the picture. One network finds the text and one reads it (PP-OCR);
 * both run at the size of what they get. For upright text; needs libpng. */
#include <math.h>
#include <png.h>

#include "network.h"

enum { MOST_BOXES = 1000, LONGEST = 960, WIDEST = 2048, LINE = 48 };

typedef struct picture {
  int width, height;
  uint8_t *rgb;
} picture;
typedef struct box {
  int x, y, width, height;
} box;

static bool read_png(const char *path, picture *p) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(&image, path)) return fprintf(stderr, "%s: %s\n", path, image.message), false;
  image.format = PNG_FORMAT_RGB;
  *p = (picture){(int)image.width, (int)image.height, malloc(PNG_IMAGE_SIZE(image))};
  const png_color white = {255, 255, 255}; /* what shows through */
  return p->rgb && png_image_finish_read(&image, &white, p->rgb, 0, NULL);
}
static bool write_png(const char *path, const picture *p) {
  png_image image = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
  image.width = (png_uint_32)p->width;
  image.height = (png_uint_32)p->height;
  return png_image_write_to_file(&image, path, 0, p->rgb, 0, NULL);
}

/* A part of the picture at another size, as the networks want it: planes of blue, green and red from -1 to 1. */
static void scale(const picture *p, box from, int width, int height, float *out) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      const float fx = fmaxf(0, ((float)x + 0.5f) * (float)from.width / (float)width - 0.5f);
      const float fy = fmaxf(0, ((float)y + 0.5f) * (float)from.height / (float)height - 0.5f);
      const int x0 = (int)fx, y0 = (int)fy;
      const int x1 = x0 + 1 < from.width ? x0 + 1 : x0, y1 = y0 + 1 < from.height ? y0 + 1 : y0;
      const float wx = fx - (float)x0, wy = fy - (float)y0;
      for (int c = 0; c < 3; c++) {
#define AT(column, row) \
  (float)p->rgb[((size_t)(from.y + (row)) * (size_t)p->width + (size_t)(from.x + (column))) * 3 + 2 - c]
        const float top = AT(x0, y0) * (1 - wx) + AT(x1, y0) * wx, bottom = AT(x0, y1) * (1 - wx) + AT(x1, y1) * wx;
#undef AT
        out[(c * height + y) * width + x] = (top * (1 - wy) + bottom * wy) / 127.5f - 1;
      }
    }
}

/* The rectangle around the pixels above 0.3 that hang together with this one, which are cleared; its mean in *sure. */
static box gather(float *map, int width, int height, int start, int *stack, float *sure) {
  int low_x = width, low_y = height, high_x = 0, high_y = 0, n = 0, pixels = 0;
  float sum = 0;
  sum += map[start], map[start] = 0;
  for (stack[n++] = start; n;) {
    const int at = stack[--n], x = at % width, y = at / width;
    pixels++;
    low_x = x < low_x ? x : low_x, high_x = x > high_x ? x : high_x;
    low_y = y < low_y ? y : low_y, high_y = y > high_y ? y : high_y;
    const int next[4] = {x > 0 ? at - 1 : at, x + 1 < width ? at + 1 : at, y > 0 ? at - width : at,
                         y + 1 < height ? at + width : at};
    for (int i = 0; i < 4; i++)
      if (map[next[i]] > 0.3f) sum += map[next[i]], map[next[i]] = 0, stack[n++] = next[i];
  }
  *sure = sum / (float)pixels;
  return (box){low_x, low_y, high_x - low_x + 1, high_y - low_y + 1};
}

/* Boxes in the picture; the map shows the core of a text, so each grows by its area * 1.6 / circumference. */
static int find_boxes(const picture *p, float *map, int width, int height, int *stack, box *out) {
  int count = 0;
  for (int i = 0; i < width * height && count < MOST_BOXES; i++) {
    float sure;
    if (map[i] <= 0.3f) continue;
    const box b = gather(map, width, height, i, stack, &sure);
    if (sure < 0.5f || b.width < 3 || b.height < 3) continue;
    const float grow = (float)(b.width * b.height) * 1.6f / (float)(2 * (b.width + b.height));
    const float sx = (float)p->width / (float)width, sy = (float)p->height / (float)height;
    const int x0 = (int)fmaxf(0, ((float)b.x - grow) * sx), y0 = (int)fmaxf(0, ((float)b.y - grow) * sy);
    const int x1 = (int)fminf((float)p->width, ((float)(b.x + b.width) + grow) * sx);
    const int y1 = (int)fminf((float)p->height, ((float)(b.y + b.height) + grow) * sy);
    out[count++] = (box){x0, y0, x1 - x0, y1 - y0};
  }
  return count;
}

static rung_status detect(network *n, const picture *p, box *out, int *count) {
  const float shrink = fminf(1, (float)LONGEST / (float)(p->width > p->height ? p->width : p->height));
  const int width = (int)fmaxf(1, roundf((float)p->width * shrink / 32)) * 32; /* the network halves it five times */
  const int height = (int)fmaxf(1, roundf((float)p->height * shrink / 32)) * 32;
  void *x;
  rung_tensor map = {0};
  rung_status s = network_input(n, "x", (int64_t[]){1, 3, height, width}, &x);
  if (s) return s;
  scale(p, (box){0, 0, p->width, p->height}, width, height, x);
  s = rung_context_run(n->context);
  if (!s) s = rung_context_output(n->context, 0, &map);
  int *stack = malloc((size_t)(width * height) * sizeof *stack);
  if (!s && !stack) s = RUNG_OUT_OF_MEMORY;
  if (!s) *count = find_boxes(p, map.data, width, height, stack, out);
  free(stack);
  return s;
}

/* Prints the characters of a list (one a line) by the numbers of the best class at each place: 0 is none, one that
 * stays the same counts once, the last is a blank. */
static void print_text(const char *list, const rung_tensor *scores) {
  const int64_t places = scores->extent[1], classes = scores->extent[2];
  int64_t last = 0;
  for (int64_t t = 0; t < places; t++) {
    const float *row = (float *)scores->data + t * classes;
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
      if (row[c] > row[best]) best = c;
    const char *p = list;
    for (int64_t k = 1; k < best && p; k++) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    if (best && best != last && best == classes - 1)
      putchar(' ');
    else if (best && best != last && p)
      printf("%.*s", (int)strcspn(p, "\n"), p);
    last = best;
  }
  putchar('\n');
}

static rung_status read_boxes(network *n, const char *list, const picture *p, const box *b, int count) {
  rung_status s = RUNG_OK;
  for (int i = 0; i < count && !s; i++) {
    void *x;
    rung_tensor scores = {0};
    const int width = (int)fminf(WIDEST, fmaxf(8, ceilf((float)b[i].width * LINE / (float)b[i].height)));
    s = network_input(n, "x", (int64_t[]){1, 3, LINE, width}, &x);
    if (s) break;
    scale(p, b[i], width, LINE, x);
    s = rung_context_run(n->context);
    if (!s) s = rung_context_output(n->context, 0, &scores);
    if (s) break;
    printf("%d %d %d %d ", b[i].x, b[i].y, b[i].width, b[i].height);
    print_text(list, &scores);
  }
  return s;
}

static void draw(picture *p, box b) {
  for (int y = b.y; y < b.y + b.height; y++)
    for (int x = b.x; x < b.x + b.width; x++)
      if (x < b.x + 2 || y < b.y + 2 || x >= b.x + b.width - 2 || y >= b.y + b.height - 2)
        memcpy(p->rgb + ((size_t)y * (size_t)p->width + (size_t)x) * 3, "\xE0\x20\x20", 3);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) return fprintf(stderr, "usage: ocr det.onnx rec.onnx PICTURE.png [BOXES.png]\n"), 2;
  static box boxes[MOST_BOXES];
  picture p = {0};
  if (!read_png(argv[3], &p)) return 1;
  rung_error error = {0};
  rung_host *host = NULL;
  rung_device *device = NULL;
  network finder = {0}, reader = {0};
  char *list = NULL;
  size_t bytes = 0;
  int count = 0;
  rung_onnx_options options = rung_onnx_options_default();
  options.largest = WIDEST;
  const rung_binding one = {"p2o.DynamicDimension.0", 1}; /* pictures at a time */
  const rung_source file = rung_source_path(argv[2]);
  rung_status s = rung_host_create(NULL, &error, &host);
  if (!s) s = rung_device_create(host, "cpu", NULL, &error, &device);
  if (!s) s = rung_onnx_note(host, &file, "character", &error, &list, &bytes);
  if (!s) s = network_open(&finder, device, argv[1], &options, &one, 1, &error);
  if (!s) s = network_open(&reader, device, argv[2], &options, &one, 1, &error);
  const bool open = !s;
  if (!s) s = detect(&finder, &p, boxes, &count);
  if (!s) s = read_boxes(&reader, list, &p, boxes, count);
  if (s)
    fprintf(stderr, "%s: %s%s\n", rung_status_text(s), open ? rung_context_message(finder.context) : error.message,
            open ? rung_context_message(reader.context) : "");
  for (int i = 0; i < count; i++) draw(&p, boxes[i]);
  if (!s && argc == 5 && !write_png(argv[4], &p)) s = RUNG_IO, fprintf(stderr, "%s cannot be written\n", argv[4]);
  if (list) rung_text_free(host, list, bytes);
  network_close(&finder);
  network_close(&reader);
  rung_device_release(device);
  rung_host_release(host);
  free(p.rgb);
  return s ? 1 : 0;
}
