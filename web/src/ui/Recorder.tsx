export default function Recorder(_: any) {
  return <div className="screen empty">Recorder</div>;
}
