"use strict";
// Pictures and videos of the motion as files.

const VIDEO_TYPES = ["video/webm;codecs=vp9", "video/webm", "video/mp4"];

/** Draw the scene with its background on a plane canvas. */
function paint(viewer, canvas) {
  const { canvas: source } = viewer.stage;
  if (canvas.width !== source.width || canvas.height !== source.height) {
    [canvas.width, canvas.height] = [source.width, source.height];
  }
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--high").trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  viewer.stage.render();
  pen.drawImage(source, 0, 0);
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(viewer, suffix) {
  const words = (viewer.data.title || "motion").toLowerCase().match(/[a-z0-9]+/g) ?? ["motion"];
  return `${words.slice(0, 6).join("-")}.${suffix}`;
}

/** Save the present picture. */
function savePicture(viewer) {
  const canvas = document.createElement("canvas");
  paint(viewer, canvas);
  canvas.toBlob((blob) => download(blob, fileName(viewer, "png")));
}

/** Play the motion once and return a promise of its video, a `Blob`. */
function recordVideo(viewer) {
  const type = VIDEO_TYPES.find((name) => window.MediaRecorder?.isTypeSupported(name));
  if (!type) return Promise.reject(new Error("This browser cannot record videos."));
  const canvas = document.createElement("canvas");
  paint(viewer, canvas);
  // Each picture is sent to the stream when it is drawn.
  const stream = canvas.captureStream(0);
  const [track] = stream.getVideoTracks();
  const recorder = new MediaRecorder(stream, { mimeType: type, videoBitsPerSecond: 8e6 });
  const parts = [];
  recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
  return new Promise((resolve) => {
    recorder.addEventListener("stop", () => resolve(new Blob(parts, { type })));
    recorder.start();
    viewer.pause();
    viewer.seek(viewer.start);
    viewer.onDraw = () => {
      paint(viewer, canvas);
      track.requestFrame();
      if (viewer.playing) return;
      viewer.onDraw = null;
      // The last picture has to reach the stream.
      setTimeout(() => recorder.stop(), 500);
    };
    const { loop } = viewer;
    viewer.loop = false;
    recorder.addEventListener("stop", () => (viewer.loop = loop));
    viewer.play();
  });
}
