async ([text, words, below]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${text}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height + below];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#1c2530";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0);
  pen.fillStyle = "#ffffff";
  pen.font = "600 18px system-ui";
  pen.textAlign = "center";
  pen.fillText(words, canvas.width / 2, image.height + below / 2 + 6);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let letters = "";
  for (let i = 0; i < data.length; i += 32768) letters += String.fromCharCode(...data.subarray(i, i + 32768));
  return btoa(letters);
}
